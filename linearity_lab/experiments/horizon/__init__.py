"""Duration of linearity (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Horizon",
    ":material/timeline:",
    "How long does it stay linear?",
    group="Beyond width",
    place=0.5,
)
