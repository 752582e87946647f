"""Home: two live networks, three starting points, and a card for every page."""

from linearity_lab.page_modules import Page

TITLE = "When does a wide network become linear?"
PAGE = Page("Home", ":material/home:", "", group="See it", place=0)
