"""A network and its linear model trained side by side: agreement and separation."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Dynamics",
    ":material/compare_arrows:",
    "Does the network follow its linear model?",
    group="Measure",
    place=2,
)
