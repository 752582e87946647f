"""Adding networks (after Ilharco et al. 2023; Ortiz-Jimenez, Favero & Frossard 2023)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Adding",
    ":material/add_circle:",
    "Do wide networks add?",
    group="Beyond width",
    place=5,
)
