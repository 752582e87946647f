"""A network and its linear model train before one's eyes, in the browser."""

from dashboard.views.entry import Page

PAGE = Page("Live", ":material/play_circle:", "What does it look like when a network becomes linear?", place=0)
