"""One folder per page: its form, its figures, its words."""
