"""A network and its linear model trained side by side: agreement and separation."""

from linearity_lab.dashboard.navigation import open_page

open_page("dynamics")
