"""Networks side by side: drawings, kernel change, and distance to the infinite-width kernel."""

from linearity_lab.dashboard.navigation import open_page

open_page("architectures")
