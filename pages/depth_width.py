"""Depth against width: how random the tangent kernel is at the beginning, and how far it moves (Hanin & Nica 2020)."""

from linearity_lab.views.navigation import open_page

open_page("depth_width")
