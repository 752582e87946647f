"""A network and its linear model, trained side by side: where they coincide, and where they diverge."""

from linearity_lab.views.navigation import open_page

open_page("dynamics")
