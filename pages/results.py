"""What has been computed: find it, open it, compare it, take it along."""

from dashboard.views.navigation import open_page

open_page("results")
