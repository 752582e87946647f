"""The source lecture in nineteen steps.

A claim, a formula, a figure, a question to predict first.
"""

from linearity_lab.dashboard.navigation import open_page

open_page("lecture")
