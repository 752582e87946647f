"""Seeds that draw the data too: the runs of a point, each on the data of its own seed."""

import hashlib
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from ntk_core.runs._values import PointValue

if TYPE_CHECKING:
    from ntk_core.runs._table import Computation, Growth, Progress


def on_own_data(computation: "Computation") -> "Computation":
    """A computation whose data are those of every seed, and whose point has the runs of all seeds.

    What a point states beside its runs (``of_each_seed``) is that of the first seed.
    """
    from ntk_core.runs._table import Computation

    def load(spec: Any) -> list[Any]:
        return [computation.load(each) for each in spec.each_seed()]

    def compute(spec: Any, data: list[Any], key: str) -> "Generator[Progress | Growth, None, PointValue]":
        points: list[Any] = []
        for index, (each, own) in enumerate(zip(spec.each_seed(), data, strict=True)):
            work = computation.compute(each, own, key)
            while True:
                try:
                    fraction, message, *_ = next(work)
                except StopIteration as stop:
                    points.append(stop.value)
                    break
                yield (index + fraction) / len(data), message
        together = {
            name: tuple(run for each in points for run in getattr(each, name)) for name in points[0].of_each_seed
        }
        merged: PointValue = points[0].model_copy(update=together)
        return merged

    def fingerprint(data: list[Any]) -> str:
        return hashlib.sha256("".join(map(computation.fingerprint, data)).encode()).hexdigest()

    return Computation(compute, load, fingerprint)
