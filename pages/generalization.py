"""Generalization beside the kernel: what linearity costs."""

from linearity_lab.views.navigation import open_page

open_page("generalization")
