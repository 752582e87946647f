"""How far a computation of several parts has come."""

import math
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from ntk_core.runs._table import Progress

Found = TypeVar("Found")
LOOK_S = 0.1  # between two checks whether all works are done


def relayed(work: Generator[Any, None, Found], change: Callable[[Any], Any]) -> Generator[Any, None, Found]:
    """Run the work, with each of its reports changed."""
    while True:
        try:
            report = next(work)
        except StopIteration as end:
            found: Found = end.value
            return found
        yield change(report)


def one_after_another(works: Sequence[Generator[Any, None, Found]]) -> Generator[Any, None, list[Found]]:
    """Run the works one after another; the share that each reports becomes a share of all."""
    found = []
    for index, work in enumerate(works):
        share_of_all = lambda report, index=index: ((index + report[0]) / len(works), *report[1:])  # noqa: E731
        found.append((yield from relayed(work, share_of_all)))
    return found


def side_by_side(
    works: Sequence[Generator[Any, None, Found]], threads: int, alone: int = 0
) -> Generator[Any, None, list[Found]]:
    """Like :func:`one_after_another`, with ``threads`` works in parallel.

    Each work's first ``alone`` reports exclude the others, so that they find what it compiled.
    Leaving the generator stops each work at its next report.
    """
    if min(threads, len(works)) < 2:
        return (yield from one_after_another(works))
    reports: SimpleQueue[tuple[int, tuple[Any, ...]]] = SimpleQueue()
    beginning, over = threading.Lock(), threading.Event()

    def exhaust(index: int) -> Any:
        try:
            with beginning:
                for _ in range(alone):
                    reports.put((index, next(works[index])))
            while not over.is_set():
                reports.put((index, next(works[index])))
        except StopIteration as stop:
            reports.put((index, (1.0, "")))
            return stop.value
        except BaseException:
            over.set()
            raise

    shares = [0.0] * len(works)
    with ThreadPoolExecutor(threads, "side-by-side") as pool:
        found = [pool.submit(exhaust, index) for index in range(len(works))]
        try:
            while not all(each.done() for each in found) or not reports.empty():
                try:
                    index, (shares[index], message, *more) = reports.get(timeout=LOOK_S)
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
