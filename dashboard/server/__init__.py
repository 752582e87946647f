"""What stands around the pages: headers, allowed hosts, readiness, logs, start and end of the workers."""

from dashboard.server._app import lifespan, middleware, routes
from dashboard.server._connections import bound_connections
from dashboard.server._lines import address_of_line

__all__ = ["address_of_line", "bound_connections", "lifespan", "middleware", "routes"]
