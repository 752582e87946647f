"""The live component's weights in NumPy: Threefry-2x32 with 20 rounds, then Box–Muller."""

import itertools

import numpy as np

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key: tuple[int, int], count0: np.ndarray, count1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two words of 32 bits for each counter (Salmon, Moraes, Dror & Shaw 2011)."""
    keys = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0] ^ key[1] ^ 0x1BD11BDA)]
    with np.errstate(over="ignore"):
        a, b = count0.astype(np.uint32) + keys[0], count1.astype(np.uint32) + keys[1]
        for group in range(5):
            for rotation in ROTATIONS[group % 2]:
                a = a + b
                b = ((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))) ^ a
            a = a + keys[(group + 1) % 3]
            b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def normals(seed: int, tensor: int, rows: int, columns: int) -> np.ndarray:
    """N(0, 1), (rows, columns): counter (k, p) under (seed, tensor) gives entries 2p and 2p + 1 of row k."""
    pairs = (columns + 1) // 2
    row, pair = np.meshgrid(np.arange(rows), np.arange(pairs), indexing="ij")
    a, b = threefry((seed, tensor), row, pair)
    radius = np.sqrt(-2 * np.log((a.astype(np.float64) + 0.5) / 2**32))
    angle = 2 * np.pi * b.astype(np.float64) / 2**32
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return both.reshape(rows, 2 * pairs)[:, :columns]


def params(hidden: tuple[int, ...], seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Parameters of a network of ``ntk_core``: ``hidden1``, …, ``output``, each (fan_in, neurons)."""
    sizes = (1, *hidden, 1)
    found = {}
    for index, (fan_in, neurons) in enumerate(itertools.pairwise(sizes)):
        layer = {"weight": normals(seed, 2 * index, neurons, fan_in).T}
        if index < len(hidden):
            layer["bias"] = normals(seed, 2 * index + 1, 1, neurons)[0]
        found[f"hidden{index + 1}" if index < len(hidden) else "output"] = layer
    return found
