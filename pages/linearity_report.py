"""Reports of your own models that the command line has stored."""

from linearity_lab.dashboard.navigation import open_page

open_page("linearity_report")
