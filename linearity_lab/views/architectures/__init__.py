"""Networks side by side: what they look like, how far their kernels move, and towards what."""

from linearity_lab.view_modules import Page

PAGE = Page("Architectures", ":material/account_tree:", "Which architectures become linear?", group="Measure", place=3)
