"""Kernel change and logits of any network on any data set."""

from linearity_lab.dashboard.navigation import open_page

open_page("explore")
