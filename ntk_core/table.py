"""Where each experiment lives, by its name. The door fills it, so that what runs experiments knows none of them."""

MODULES: dict[str, str] = {}  # name → module whose ``EXPERIMENT`` states the experiment
KEPT: dict[str, str] = {}  # the same for what is kept and shown, and which no page, job or spec can start
