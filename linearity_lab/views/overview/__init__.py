"""The phenomenon in motion, three questions to begin with, and every page as a card."""

from linearity_lab.view_modules import Page

PAGE = Page("Home", ":material/home:", "", group="See it", place=0)
