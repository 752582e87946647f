"""Around Streamlit's pages: allowed hosts, security headers, readiness, logs, start and end of the workers."""

from linearity_lab.server._app import lifespan, middleware, routes

__all__ = ["lifespan", "middleware", "routes"]
