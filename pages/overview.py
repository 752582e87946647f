"""The phenomenon in motion, three questions to begin with, and every page as a card."""

from dashboard.components.overview import cards, living
from dashboard.navigation import enter

PAGE = enter("overview")
living(PAGE)
cards(PAGE)
