"""What has been computed: find it, open it, compare it, export it."""

from linearity_lab.view_modules import Page

PAGE = Page("Results", ":material/folder_open:", "Your runs", group="Your own", place=1)
