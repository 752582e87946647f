"""From results to Plotly figures: pure functions, free of Streamlit and of JAX."""
