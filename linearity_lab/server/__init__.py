"""Around Streamlit's pages: allowed hosts, security headers, readiness, logs, start and end of the workers."""

from linearity_lab.server._app import lifespan, middleware, routes
from linearity_lab.server._first_paint import EARLY_PAGES, EARLY_SCRIPT

__all__ = ["EARLY_PAGES", "EARLY_SCRIPT", "lifespan", "middleware", "routes"]
