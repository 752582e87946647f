"""How far a computation of several parts has come."""

import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from ntk_core.runs._table import Progress

Found = TypeVar("Found")


def in_turn(works: Sequence[Generator[Any, None, Found]]) -> Generator[Any, None, list[Found]]:
    """What all works give, one after the other; the share that each tells of itself becomes a share of all."""
    found = []
    for index, work in enumerate(works):
        while True:
            try:
                share, *told = next(work)
            except StopIteration as stop:
                found.append(stop.value)
                break
            yield ((index + share) / len(works), *told)
    return found


def by_steps(stretches: Iterable[int], max_steps: int, words: str, first: float = 0.0) -> Iterator[Progress]:
    """Progress of a training from the steps reached, on a logarithmic axis, from the share ``first`` on."""
    for step in stretches:
        yield first + (1 - first) * math.log1p(step) / math.log1p(max_steps), f"{words}, step {step:,}"
