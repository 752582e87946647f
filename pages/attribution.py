"""Attribution of predictions to training points (after Koh & Liang 2017; Park et al. 2023)."""

from linearity_lab.dashboard.navigation import open_page

open_page("attribution")
