"""Kernel change against width and during training (Liu, Zhu & Belkin 2020, Fig. 1)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Kernel",
    ":material/show_chart:",
    "Does the kernel stop moving as the width grows?",
    group="Measure",
    place=0,
    headline="When does the tangent kernel stop moving?",
)
