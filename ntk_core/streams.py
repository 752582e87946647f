"""Random numbers of NumPy, one independent stream per seed and purpose."""

import numpy as np


def stream(seed: int, *purpose: int) -> np.random.Generator:
    """Return the PCG64 generator of one purpose under one seed, equal on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=purpose)))
