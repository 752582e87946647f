"""Generalization of network and kernel: the cost of linearity."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Generalization",
    ":material/psychology:",
    "What does linearity cost?",
    group="Beyond width",
    place=4,
)
