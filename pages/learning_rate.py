"""Learning rates above which linearity ends.

Source: Lewkowycz et al. 2020; Zhu, Liu, Radhakrishnan & Belkin 2022.
"""

from linearity_lab.dashboard.navigation import open_page

open_page("learning_rate")
