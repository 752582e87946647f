"""Attribution of predictions to training points (after Koh & Liang 2017; Park et al. 2023)."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Attribution",
    ":material/balance:",
    "What is a training point worth?",
    group="Beyond width",
    place=6,
)
