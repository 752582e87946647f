"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from linearity_lab.dashboard.navigation import open_page

open_page("optimization")
