"""A network and the linear model that it follows early in training.

Source: Hu, Xiao, Adlam & Pennington 2020.
"""

from linearity_lab.dashboard.navigation import open_page

open_page("early_time")
