"""What stands around the pages: headers, allowed hosts, readiness, logs, start and end of the workers."""

from dashboard.server._app import lifespan, middleware, routes

__all__ = ["lifespan", "middleware", "routes"]
