"""Duration of linearity (after Lewkowycz et al. 2020; Lewkowycz & Gur-Ari 2020; Lyu & Li 2020)."""

from linearity_lab.dashboard.navigation import open_page

open_page("horizon")
