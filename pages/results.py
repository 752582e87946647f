"""What has been computed: find it, open it, compare it, export it."""

from linearity_lab.views.navigation import open_page

open_page("results")
