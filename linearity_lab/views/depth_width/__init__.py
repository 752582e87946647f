"""Depth against width: how random the tangent kernel is at the beginning, and how far it moves (Hanin & Nica 2020)."""

from linearity_lab.views.entry import Page

PAGE = Page("Depth", ":material/layers:", "Deep against wide: which wins?", group="Beyond width", place=1)
