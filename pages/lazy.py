"""Lazy by scale, linear by width (Liu, Zhu & Belkin 2020, §1.1; Chizat, Oyallon & Bach 2019)."""

from dashboard.views.navigation import open_page

open_page("lazy")
