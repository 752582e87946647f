"""Uploaded data: a table, arrays or images, and the kernel change of a network that learns them."""

from linearity_lab.views.navigation import open_page

open_page("own_data")
