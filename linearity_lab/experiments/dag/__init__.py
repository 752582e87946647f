"""Draw a network as a graph and see whether it becomes linear (Zhu, Liu & Belkin 2022)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Graphs",
    ":material/polyline:",
    "Does my own graph become linear?",
    group="Measure",
    place=4,
    headline="Does this graph become linear?",
)
