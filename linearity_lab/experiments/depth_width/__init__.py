"""Depth and width: randomness of the tangent kernel at w₀,
and its change in training (Hanin & Nica 2020).
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Depth", ":material/layers:", "Deep against wide: which wins?", group="Beyond width", place=1
)
