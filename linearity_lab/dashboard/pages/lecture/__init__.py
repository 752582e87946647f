"""The source lecture in nineteen steps.

A claim, a formula, a figure, a question to predict first.
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Lecture", ":material/school:", "Why does this happen, step by step?", group="See it", place=2
)
