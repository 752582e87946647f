"""What has been computed: find it, open it, compare it, take it along."""

from dashboard.views.entry import Page

PAGE = Page("Results", ":material/folder_open:", "What has been computed here?", place=11)
