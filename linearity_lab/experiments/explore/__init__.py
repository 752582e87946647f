"""Kernel change and logits of any network on any data set: the first page of *Measure*."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Explore",
    ":material/explore:",
    "Does this network become linear as it widens?",
    group="Measure",
    place=-1,
)
