"""A network and its linear model train in the browser."""

from linearity_lab.dashboard.navigation import open_page

open_page("live")
