"""A network and its linear model train in the browser."""

from linearity_lab.page_modules import Page

QUESTION = "What does it look like when a network becomes linear?"
PAGE = Page("Live", ":material/play_circle:", QUESTION, group="See it", place=1)
