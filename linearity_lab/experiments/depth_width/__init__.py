"""Depth and width: how random the tangent kernel is, and its change in training.

Source: Hanin & Nica 2020.
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Depth", ":material/layers:", "Deep against wide: which wins?", group="Beyond width", place=1
)
