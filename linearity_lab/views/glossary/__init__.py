"""The words of the field, to be searched, each with a link of its own."""

from linearity_lab.view_modules import Page

PAGE = Page("Glossary", ":material/dictionary:", "What does this word mean?", group="See it", place=3)
