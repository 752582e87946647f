"""What linearity costs: generalization beside the kernel."""

from dashboard.views.entry import Page

PAGE = Page("Generalization", ":material/psychology:", "What does linearity cost?", group="Beyond", place=3)
