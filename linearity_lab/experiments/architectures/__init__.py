"""Networks side by side: drawings, kernel change, and distance to the infinite-width kernel."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Architectures",
    ":material/account_tree:",
    "Which architectures become linear?",
    group="Measure",
    place=3,
)
