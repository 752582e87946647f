"""Home: two live networks, three starting points, and a card for every page."""

from linearity_lab.dashboard.navigation import open_page

open_page("overview")
