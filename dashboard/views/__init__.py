"""One folder a page: its form, its figures, its words."""
