"""The words of the field, to be searched, each with a link of its own."""

from dashboard.views.entry import Page

PAGE = Page("Glossary", ":material/dictionary:", "What does this word mean?", place=12, letters="K  H  κ  ΔK")
