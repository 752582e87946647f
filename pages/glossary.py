"""Glossary of the field's terms: searchable, with a link for each entry."""

from linearity_lab.dashboard.navigation import open_page

open_page("glossary")
