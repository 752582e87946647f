"""What is said: the Markdown of pages and glossary, read by name, and sentences; free of Streamlit."""
