"""Hessian norms against width, beside the kernel change of the same networks.

Source: Liu, Zhu & Belkin 2020, Table 1.
"""

from linearity_lab.dashboard.navigation import open_page

open_page("hessian")
