"""What has been computed: find it, open it, compare it, export it."""

from linearity_lab.views.entry import Page

PAGE = Page(
    "Results", ":material/folder_open:", "What has been computed here?", group="Your own", place=1, letters="A | B | C"
)
