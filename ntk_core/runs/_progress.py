"""How far a computation of several parts has come."""

import math
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ntk_core.runs._table import Progress

Found = TypeVar("Found")
LOOK_S = 0.1  # between two looks at whether all works are done


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


def side_by_side(
    works: Sequence[Generator[Any, None, Found]], threads: int, alone: int = 0
) -> Generator[Any, None, list[Found]]:
    """As :func:`in_turn`, as many works at once as there are ``threads``.

    Until a work has told of itself ``alone`` times, no other is at that stage: what it compiles there, the others find.
    Leaving the generator stops each work where it tells of itself next.
    """
    if min(threads, len(works)) < 2:
        return (yield from in_turn(works))
    told: SimpleQueue[tuple[int, tuple[Any, ...]]] = SimpleQueue()
    beginning, over = threading.Lock(), threading.Event()

    def exhaust(index: int) -> Any:
        try:
            with beginning:
                for _ in range(alone):
                    told.put((index, next(works[index])))
            while not over.is_set():
                told.put((index, next(works[index])))
        except StopIteration as stop:
            told.put((index, (1.0, "")))
            return stop.value
        except BaseException:
            over.set()
            raise

    shares = [0.0] * len(works)
    with ThreadPoolExecutor(threads, "side-by-side") as pool:
        found = [pool.submit(exhaust, index) for index in range(len(works))]
        try:
            while not all(each.done() for each in found) or not told.empty():
                try:
                    index, (shares[index], message, *more) = told.get(timeout=LOOK_S)
                except Empty:
                    continue
                if message:
                    yield math.fsum(shares) / len(works), message, *more
        finally:
            over.set()
    return [each.result() for each in found]


def by_steps(stretches: Iterable[int], max_steps: int, words: str, first: float = 0.0) -> Iterator[Progress]:
    """Progress of a training from the steps reached, on a logarithmic axis, from the share ``first`` on."""
    for step in stretches:
        yield first + (1 - first) * math.log1p(step) / math.log1p(max_steps), f"{words}, step {step:,}"
