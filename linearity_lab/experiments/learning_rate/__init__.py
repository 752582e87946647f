"""Learning rates above which linearity ends.

The papers are Lewkowycz et al. (2020) and Zhu, Liu, Radhakrishnan & Belkin (2022).
"""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Learning rate", ":material/speed:", "Where does linearity end?", group="Beyond width", place=0
)
