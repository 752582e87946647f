"""Which cases of the tests run. Without JAX."""

import os

# ``make exhaustive`` and ``make programs`` run all random programs, graphs and cases of sampled
# grids.
EXHAUSTIVE = os.environ.get("EXHAUSTIVE") == "1"
