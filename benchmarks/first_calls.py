"""First calls of plain functions and our networks in fresh processes.

``python -m benchmarks --only first_calls`` takes some three minutes on two cores. Times are wall
and processor seconds of one call, after imports, weights and inputs.
``python -m benchmarks.first_calls REVISION`` compares first and warm calls with those of an earlier
commit, in turn, by processor time: ten minutes.
"""

import statistics
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import cyclopts
import jax
import jax.numpy as jnp
from jaxtyping import PyTree

from benchmarks.measure import (
    ROOT,
    Meter,
    Row,
    Settings,
    Watch,
    earlier,
    environment,
    isolated,
)
from ntk_core import (
    ConvNet,
    FullyConnected,
    ResNet,
    Transformer,
    empirical_ntk,
    from_torch,
    hessian_norm,
)
from ntk_core.networks.architectures import Network

QUANTITIES = ("kernel", "hessian")
NAMES = {
    "dense": "3 hidden layers of 1,000",
    "biases": "the same with biases",
    "convnet": "2 convolutions of 64 channels",
    "resnet": "residual, 3 × 1,000",
    "transformer": "transformer, 4 heads of 32",
}
SLOWER_AT_MOST = 1.5
BLOCK_AT_MOST_S = 10.0
WARM_S = 1.0  # processor time of each side's warm calls in one round
LEAST_WARM = 12
GPT: dict[str, int] = {
    "layers": 2,
    "heads": 4,
    "width": 128,
    "tokens": 16,
    "vocabulary": 64,
    "num_outputs": 2,
}


def measure(settings: Settings) -> Row:
    """Medians of processes that alternate, and their ratios."""
    repeats = 1 if settings.quick else 3
    cases = [
        (name, what, way) for name in NAMES for what in QUANTITIES for way in ("own", "function")
    ]
    cases += [("gpt", what, "function") for what in QUANTITIES]
    times = [
        [isolated(first_call, *case, settings.quick) for case in cases] for _ in range(repeats)
    ]
    rows = []
    ratios = []
    for (name, what, way), found in zip(cases, zip(*times, strict=True), strict=True):
        medians = {
            clock: statistics.median(each[clock] for each in found)
            for clock in ("wall_s", "processor_s")
        }
        rows.append({"network": name, "quantity": what, "way": way, **medians})
        if name in NAMES and way == "function":
            slower = medians["wall_s"] / rows[-2]["wall_s"]
            ratios.append({"network": name, "quantity": what, "slower": slower})
    data: Row = {"repeats": repeats, "rows": rows, "ratios": ratios, "gpt": GPT}
    if python := settings.interpreters.get("torchax"):
        case = "gpt of pytorch"
        data["gpt_of_pytorch"] = {
            each: isolated(first_call, case, each, "", python=python) for each in QUANTITIES
        }
    return data


def first_call(name: str, what: str, way: str, is_small: bool = False, warm_s: float = 0.0) -> Row:
    """Measure one first call in this process, then warm ones."""
    if name.startswith("gpt"):
        net, params, x = _gpt() if name == "gpt" else _gpt_of_pytorch()
    else:
        own, shape = _network(name, is_small)
        params = jax.jit(own.init, static_argnums=1)(jax.random.key(0), shape)
        net = own if way == "own" else own.apply
        x = jax.random.normal(jax.random.key(1), (20, *shape))
    jax.block_until_ready((params, x))

    def call() -> jax.Array:
        found = (
            empirical_ntk(net, params, x)
            if what == "kernel"
            else hessian_norm(net, params, x[0]).value
        )
        return jax.block_until_ready(jnp.asarray(found))

    meter = Meter()
    call()
    row = meter.read()
    if warm_s:
        row["warm_s"] = _warm_s(call, warm_s)
    return row


def _warm_s(call: Callable[[], object], budget_s: float) -> float:
    """Return the median processor time of a warm call, of twelve or more."""
    times: list[float] = []
    while len(times) < LEAST_WARM or sum(times) < budget_s:
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def _network(name: str, is_small: bool) -> tuple[Network, tuple[int, ...]]:
    width, channels, head_dim = (20, 4, 2) if is_small else (1_000, 64, 32)
    networks: dict[str, tuple[Network, tuple[int, ...]]] = {
        "dense": (
            FullyConnected(width=width, depth=3, num_outputs=3, activation="relu", use_bias=False),
            (10,),
        ),
        "biases": (
            FullyConnected(width=width, depth=3, num_outputs=3, activation="relu", use_bias=True),
            (10,),
        ),
        "convnet": (
            ConvNet(width=channels, depth=2, num_outputs=3, activation="relu", use_bias=False),
            (8, 8, 3),
        ),
        "resnet": (ResNet(width=width, depth=3, num_outputs=3, use_bias=False), (10,)),
        "transformer": (Transformer(num_heads=4, head_dim=head_dim, num_outputs=3), (16, 8)),
    }
    return networks[name]


def main(revision: str, rounds: int = 7, networks: list[str] | None = None) -> None:
    """Compare kernels and Hessian norms with those of an earlier commit.

    Args:
        networks: of :data:`NAMES`; all by default. The committed result keeps its other rows.
    """
    from benchmarks.__main__ import RESULTS, keep, with_earlier_rows

    conditions = environment()
    watch = Watch()
    rows = list[Row]()
    with earlier(revision) as before:
        trees = {"before": before, "now": ROOT}
        for name, what in product(networks or NAMES, QUANTITIES):
            case = name, what, "own", False, WARM_S
            turns = [
                {side: isolated(first_call, *case, tree=at) for side, at in trees.items()}
                for _ in range(rounds)
            ]
            row: Row = {"network": name, "quantity": what}
            for kind, clock in (("first", "processor_s"), ("warm", "warm_s")):
                row[kind] = {
                    side: statistics.median(turn[side][clock] for turn in turns) for side in trees
                }
                row[kind]["ratio"] = statistics.median(
                    turn["now"][clock] / turn["before"][clock] for turn in turns
                )
            rows.append(row)
    found: Row = {
        "environment": conditions,
        "load": {**watch.note(), "forced": False},
        "revision": revision,
        "rounds": rounds,
        "rows": rows,
    }
    if networks:
        found = dict(with_earlier_rows(found, RESULTS / "before.json", "network"))
    keep("before", found, False)


def _gpt() -> tuple[Any, PyTree, jax.Array]:
    """Return (apply, params, x) of a small decoder in plain JAX."""
    layers, heads, width, tokens = (GPT[key] for key in ("layers", "heads", "width", "tokens"))
    keys = iter(jax.random.split(jax.random.key(0), 100))

    def draw(*shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) / shape[0] ** 0.5

    def norm() -> PyTree:
        return {"gain": jnp.ones(width), "bias": jnp.zeros(width)}

    def block() -> PyTree:
        sizes = {
            "qkv": (width, 3 * width),
            "out": (width, width),
            "up": (width, 4 * width),
            "down": (4 * width, width),
        }
        matrices = {name: draw(*shape) for name, shape in sizes.items()}
        return {"n1": norm(), "n2": norm(), "b": jnp.zeros(4 * width), **matrices}

    ends = {"words": draw(GPT["vocabulary"], width), "places": draw(tokens, width)}
    blocks = [block() for _ in range(layers)]
    params = {**ends, "blocks": blocks, "last": norm(), "head": draw(width, GPT["num_outputs"])}

    def normalized(p: PyTree, a: jax.Array) -> jax.Array:
        a = a - a.mean(-1, keepdims=True)
        return a / jnp.sqrt((a**2).mean(-1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]

    def apply(p: PyTree, x: jax.Array) -> jax.Array:
        a = p["words"][x] + p["places"]
        for each in p["blocks"]:
            parts = jnp.split(normalized(each["n1"], a) @ each["qkv"], 3, -1)
            q, k, v = (part.reshape(*a.shape[:2], heads, -1) for part in parts)
            scores = jnp.einsum("nthd,nshd->nhts", q, k) / (width // heads) ** 0.5
            scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -jnp.inf)
            a = (
                a
                + jnp.einsum("nhts,nshd->nthd", jax.nn.softmax(scores), v).reshape(a.shape)
                @ each["out"]
            )
            a = a + jax.nn.gelu(normalized(each["n2"], a) @ each["up"] + each["b"]) @ each["down"]
        return normalized(p["last"], a)[:, -1] @ p["head"]

    return apply, params, jax.random.randint(jax.random.key(1), (8, tokens), 0, GPT["vocabulary"])


def _gpt_of_pytorch() -> tuple[Any, PyTree, jax.Array]:
    import torch
    from torch import nn

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = GPT["width"]
            self.words = nn.Embedding(GPT["vocabulary"], width)
            self.places = nn.Embedding(GPT["tokens"], width)
            layer = nn.TransformerEncoderLayer(
                width, GPT["heads"], 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            self.blocks = nn.TransformerEncoder(layer, GPT["layers"], enable_nested_tensor=False)
            self.head = nn.Linear(width, GPT["num_outputs"])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(GPT["tokens"])
            return self.head(
                self.blocks(self.words(x) + self.places.weight, mask, is_causal=True)[:, -1]
            )

    x = jax.random.randint(jax.random.key(1), (8, GPT["tokens"]), 0, GPT["vocabulary"])
    torch.manual_seed(0)
    return (*from_torch(Decoder().eval(), x), x)


if __name__ == "__main__":
    from benchmarks import first_calls  # fresh processes find its functions by their module

    cyclopts.run(first_calls.main)
