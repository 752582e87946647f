"""What is said: sentences, explanations, the glossary; free of Streamlit."""
