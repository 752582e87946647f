"""A network and its linear model, trained side by side: where they move as one, and where they drift apart."""

from linearity_lab.views.navigation import open_page

open_page("dynamics")
