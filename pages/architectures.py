"""Two networks side by side: what they look like, how far their kernels move, and towards what."""

from linearity_lab.views.navigation import open_page

open_page("architectures")
