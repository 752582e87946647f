"""The phenomenon in motion, three questions to begin with, and every page as a card."""

from linearity_lab.views.navigation import open_page

open_page("overview")
