"""Hessian norms against width.

The kernel change of the same networks is beside them (Liu, Zhu & Belkin 2020, Table 1).
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Hessian",
    ":material/grid_on:",
    "Why do wide networks become linear?",
    group="Measure",
    place=1,
    headline="Why do wide networks become linear? The Hessian",
)
