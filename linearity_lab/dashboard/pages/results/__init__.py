"""Stored runs: find, open, compare and export them."""

from linearity_lab.page_modules import Page

PAGE = Page("Results", ":material/folder_open:", "Your runs", group="Your own", place=1)
