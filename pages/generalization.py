"""What linearity costs: generalization beside the kernel."""

from dashboard.views.navigation import open_page

open_page("generalization")
