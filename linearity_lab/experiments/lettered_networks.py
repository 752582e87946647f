"""A base for experiments that compare networks on the same data, each named by a letter."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from pydantic import Field, NonNegativeInt, model_validator

from linearity_lab.experiments.trained_sweep import TrainedPoint
from linearity_lab.networks.spec import GROWN_TITLES, ArchitectureSpec, OutputName, grown_size
from linearity_lab.runs import Outcome, SweepSpec, Value, columns, point_key
from linearity_lab.runs.columns import Column
from ntk_core.fits import exponent_line, fit_runs
from ntk_core.networks.choices import OUTPUTS, almost_everywhere
from ntk_core.progress import Progress

LETTERS = "ABCD"  # names of the networks


def architectures_field(*default: ArchitectureSpec) -> Any:
    """Field of the compared networks."""
    return Field(
        default=default,
        min_length=1,
        max_length=len(LETTERS),
        title="Networks",
        json_schema_extra={"each": "Network"},
    )


def groups_of_networks() -> Mapping[str, Sequence[str]]:
    """Return the groups of settings on a page, one for each network."""
    return {
        f"Network {letter}": (f"architectures.{index}.",) for index, letter in enumerate(LETTERS)
    }


class LetteredNetworks(SweepSpec):
    """Base of specs whose points are one network at one width.

    Validates that every network accepts the data.
    """

    key_parts: ClassVar = {"network": str, "width": int}

    if TYPE_CHECKING:  # a field of the subclasses, which order them
        architectures: tuple[ArchitectureSpec, ...]

    @model_validator(mode="after")
    def _networks_take_data(self) -> Self:
        shapes = self.dataset.known_shapes()
        if shapes is None:
            return self
        for index, architecture in enumerate(self.architectures):
            field = f"architectures.{index}"
            architecture.check_inputs(shapes.input_shape, field, widths=self.widths)
        return self

    @property
    def networks(self) -> dict[str, ArchitectureSpec]:
        """Letter → network."""
        return dict(zip(LETTERS, self.architectures, strict=False))

    @property
    def swept_title(self) -> str:
        """Title of the swept values; widths if networks differ in them."""
        return GROWN_TITLES.get(grown_size(self.architectures), super().swept_title)

    def point_keys(self) -> tuple[str, ...]:
        """``network=A,width=100``: every network at the smallest width, then at the next."""
        return tuple(
            point_key(network=letter, width=width)
            for width in self.widths
            for letter in self.networks
        )


class TrainedNetworks(LetteredNetworks):
    """Base of specs that train every network with every output, from every seed."""

    point_words: ClassVar[tuple[str, str]] = (
        "pair of network and size",
        "pairs of network and size",
    )

    if TYPE_CHECKING:  # a field of the subclasses, which order them
        outputs: tuple[OutputName, ...]

    @property
    def almost_everywhere(self) -> str:
        """Curvature that second derivatives miss at kinks; empty without kinks."""
        activations = itertools.chain.from_iterable(each.activations for each in self.architectures)
        return almost_everywhere(activations, self.outputs)

    def num_records(self, key: str) -> Mapping[str, int]:
        """One run per output and seed."""
        return {"runs": len(self.outputs) * self.num_seeds}


class SeveralTrainings(Value):
    """One start of a network with an output, trained several times.

    Attributes:
        output: the output nonlinearity φ.
        seed: seed of the initialization w₀.
        outcome: of all trainings; the first that did not converge decides.
        steps: steps of each training.
    """

    output: str
    seed: NonNegativeInt
    outcome: Outcome
    steps: tuple[NonNegativeInt, ...]

    @property
    def num_steps(self) -> int:
        """Steps of all trainings together."""
        return sum(self.steps)


Run = TypeVar("Run", bound=SeveralTrainings)


class NetworkPoint(TrainedPoint[Run], Generic[Run]):
    """All runs of one network at one width."""

    if TYPE_CHECKING:  # a field of the subclasses, which order them
        network: str


Point = TypeVar("Point", bound=NetworkPoint[Any])


def point_of_runs(
    spec: TrainedNetworks,
    progress: Progress,
    run: Callable[[str, int, Progress], Run],
    point: Callable[[tuple[Run, ...]], Point],
) -> Point:
    """Compute the runs of a point, and show it after each of them.

    Args:
        run: (output, seed, progress) ↦ one run.
        point: the runs so far ↦ the point.
    """
    plan = list(itertools.product(spec.outputs, spec.seeds))
    runs: tuple[Run, ...] = ()
    for index, (output, seed) in enumerate(plan):
        of_run = progress.part(index, len(plan))
        runs = (*runs, run(output, seed, of_run))
        of_run.show(point(runs))
    return point(runs)


def runs_of(
    points: Sequence[NetworkPoint[Run]], letter: str, output: str
) -> list[tuple[float, Run]]:
    """Return (width, run) of every run of a network with an output."""
    found: list[tuple[float, Run]] = []
    for point in points:
        if point.network == letter:
            found += [(float(point.width), run) for run in point.of(output)]
    return found


def summary_of_networks(
    spec: TrainedNetworks,
    points: Sequence[NetworkPoint[Run]],
    of_result: Sequence[Column],
    value: Callable[[Run], float],
    name: str,
) -> str:
    """Return the table of means over seeds, and notes.

    The exponent of a value for each network and output follows.
    """
    exponents = []
    for letter, architecture in spec.networks.items():
        for output in spec.outputs:
            law = fit_runs(runs_of(points, letter, output), value, columns.converged)
            title = (
                f"Network {letter}, {architecture.record.title}, {OUTPUTS[output].title}, {name}"
            )
            exponents.append(exponent_line(title, law))
    notes = columns.outcome_notes(points)
    if spec.almost_everywhere:
        notes = [spec.almost_everywhere, *notes]
    return "\n".join([*columns.text_table(of_result, points), "", *notes, *exponents])
