"""Uploaded data: a table, arrays or images, and the kernel change of a network that learns them."""

from linearity_lab.dashboard.navigation import open_page

open_page("own_data")
