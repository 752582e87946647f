"""Depth and width: how random the tangent kernel is, and its change in training.

Source: Hanin & Nica 2020.
"""

from linearity_lab.dashboard.navigation import open_page

open_page("depth_width")
