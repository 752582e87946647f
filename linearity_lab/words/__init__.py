"""Words: the Markdown of pages and glossary, by name, and sentences; free of Streamlit."""
