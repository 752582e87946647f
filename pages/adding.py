"""Adding networks (after Ilharco et al. 2023; Ortiz-Jimenez, Favero & Frossard 2023)."""

from linearity_lab.dashboard.navigation import open_page

open_page("adding")
