"""Kernel change against width and along training (Liu, Zhu & Belkin 2020, Fig. 1)."""

from linearity_lab.dashboard.navigation import open_page

open_page("kernel_change")
