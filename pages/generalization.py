"""What linearity costs: generalization beside the kernel."""

from linearity_lab.views.navigation import open_page

open_page("generalization")
