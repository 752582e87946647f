"""One figure of the gallery alone, for slides and other pages; in no menu."""
