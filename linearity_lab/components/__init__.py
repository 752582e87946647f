"""Parts that pages are built from: the run panel, charts with their tables, exports, provenance."""
