"""Searchable glossary; each entry has a link."""

from linearity_lab.page_modules import Page

PAGE = Page(
    "Glossary", ":material/dictionary:", "What does this word mean?", group="See it", place=3
)
