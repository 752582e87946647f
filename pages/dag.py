"""Draw a network as a graph and see whether it becomes linear (Zhu, Liu & Belkin 2022)."""

from linearity_lab.dashboard.navigation import open_page

open_page("dag")
