"""A network and its linear model train before one's eyes."""

from linearity_lab.views.navigation import open_page

open_page("live")
