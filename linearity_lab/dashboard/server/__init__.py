"""The server around Streamlit.

Allowed hosts, security headers, readiness, logs, worker lifecycle.
"""

from linearity_lab.dashboard.server._app import lifespan, middleware, routes
from linearity_lab.dashboard.server._first_paint import EARLY_PAGES, EARLY_SCRIPT
from linearity_lab.dashboard.server._visitor_cookie import visitor_of

__all__ = ["EARLY_PAGES", "EARLY_SCRIPT", "lifespan", "middleware", "routes", "visitor_of"]
