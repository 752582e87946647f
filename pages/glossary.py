"""The words of the field, to be searched, each with a link of its own."""

from linearity_lab.views.navigation import open_page

open_page("glossary")
