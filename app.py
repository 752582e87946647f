"""Linearity Lab: ``streamlit run app.py``."""

from pathlib import Path

import streamlit as st

from dashboard import session
from dashboard.jobs import shared_jobs
from dashboard.navigation import menu
from dashboard.sentences import plain
from ntk_core.errors import InvalidInput

# A file of our own: Streamlit fetches a named icon from another host.
ICON = Path(__file__).parent / "dashboard" / "icon.svg"
# Room for the figures: Streamlit leaves 96 px above and 80 px beside the page.
COMPACT = """[data-testid="stMainBlockContainer"] { padding: 4rem clamp(1rem, 3vw, 3rem) 2rem }"""

# A worker process that imports this script must not start a second dashboard.
if __name__ == "__main__":
    st.set_page_config(page_title="Linearity Lab", page_icon=str(ICON), layout="wide")
    st.html(f"<style>{COMPACT}</style>")
    try:
        jobs = shared_jobs()
        jobs.ask_presence(session.is_connected)
        jobs.warm_up()
    except InvalidInput as error:  # the server's own settings, such as where results are kept
        st.error(plain(f"The dashboard cannot compute: {error}."))
        st.stop()
    menu().run()
