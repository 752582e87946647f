"""The thin layer between the pages and the core."""
