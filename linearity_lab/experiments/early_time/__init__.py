"""A network and the linear model that it follows early in training.

Source: Hu, Xiao, Adlam & Pennington 2020.
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Early time",
    ":material/schedule:",
    "What does a network learn first?",
    group="Beyond width",
    place=5,
)
