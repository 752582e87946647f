"""Generalization of network and kernel: the cost of linearity."""

from linearity_lab.dashboard.navigation import open_page

open_page("generalization")
