"""What has been computed: find it, open it, compare it, export it."""

from dashboard.views.navigation import open_page

open_page("results")
