"""Components of pages: run panel, charts with tables, exports, provenance."""
