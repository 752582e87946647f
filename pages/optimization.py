"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from dashboard.views.navigation import open_page

open_page("optimization")
