"""Networks as settings: their specs, their sizes without JAX, and the networks built from them."""
