"""Stored runs: find, open, compare and export them."""

from linearity_lab.dashboard.navigation import open_page

open_page("results")
