"""Depth and width: randomness of the tangent kernel at w₀,
and its change in training (Hanin & Nica 2020).
"""

from linearity_lab.dashboard.navigation import open_page

open_page("depth_width")
