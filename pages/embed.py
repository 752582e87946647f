"""One figure of the gallery alone, for slides and other pages.

``/embed?figure=liu-fig1-left``; in no menu.
"""

from linearity_lab.dashboard.navigation import open_page

open_page("embed")
