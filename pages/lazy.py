"""From lazy to rich (Yang & Hu 2021; Chizat, Oyallon & Bach 2019; Liu, Zhu & Belkin 2020, §1.1)."""

from linearity_lab.dashboard.navigation import open_page

open_page("lazy")
