"""Linearity Lab: ``streamlit run app.py``.

Streamlit finds ``app`` below, serves it, and executes this file again, as ``__main__``, for
every view of a page.
"""

import streamlit as st

from linearity_lab.dashboard import early, job_status
from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.profile import error_text, profile
from linearity_lab.dashboard.navigation import ICON, menu
from linearity_lab.dashboard.page_table import PAGES
from linearity_lab.dashboard.pages.lecture import poll_votes
from linearity_lab.dashboard.server import lifespan, middleware, routes
from linearity_lab.dashboard.server.garbage import collect_garbage
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput

if __name__ == "__main__":
    # A file of our own: Streamlit fetches a named icon from another host.
    st.set_page_config(page_title="Linearity Lab", page_icon=str(ICON), layout="wide")
    try:
        profile()
        shared_jobs().warm_up()
    except InvalidInput as error:  # the server's own settings, such as where results are kept
        st.error(plain(f"The dashboard cannot compute: {error_text(error)}."))
        st.stop()
    page = menu()
    home = not page.url_path
    st.set_page_config(page_title=f"{'' if home else f'{page.title} · '}Linearity Lab")
    job_status.tray({each.name: (each.title, each.path) for each in PAGES})
    page.run()
    collect_garbage(page.url_path)
elif __name__ == "app":
    ours = [*routes(), *job_status.routes(), early.ROUTE, poll_votes.ROUTE]
    app = st.App(__file__, lifespan=lifespan, routes=ours, middleware=middleware())
