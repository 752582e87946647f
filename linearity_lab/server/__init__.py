"""What stands around the pages: headers, allowed hosts, readiness, logs, polls, start and end of the workers."""

from linearity_lab.server._app import lifespan, middleware, routes
from linearity_lab.server._connections import bound_connections
from linearity_lab.server._lines import address_of_line
from linearity_lab.server._polls import Poll, Polls, TooManyPolls, shared_polls

__all__ = [
    "Poll",
    "Polls",
    "TooManyPolls",
    "address_of_line",
    "bound_connections",
    "lifespan",
    "middleware",
    "routes",
    "shared_polls",
]
