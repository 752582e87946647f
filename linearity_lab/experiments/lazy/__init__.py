"""From lazy to rich (Yang & Hu 2021; Chizat, Oyallon & Bach 2019; Liu, Zhu & Belkin 2020, §1.1)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Lazy to rich",
    ":material/alt_route:",
    "Lazy or rich: by width, by scale or by choice?",
    group="Beyond width",
    place=2,
)
