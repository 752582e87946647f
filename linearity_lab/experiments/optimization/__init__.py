"""Convergence without linearity (Liu, Zhu & Belkin 2020, §5)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Optimization",
    ":material/trending_down:",
    "Does training need a constant kernel?",
    group="Beyond width",
    place=3,
)
