"""Generalization of network and kernel: the cost of linearity."""

from linearity_lab.views.navigation import open_page

open_page("generalization")
