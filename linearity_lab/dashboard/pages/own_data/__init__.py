"""Uploaded data: a table, arrays or images, and the kernel change of a network that learns them."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Your data", ":material/upload_file:", "What about my own data?", group="Your own", place=0
)
