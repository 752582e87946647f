"""Networks named by letters: their titles, styles and points, and the choice of one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from linearity_lab.charts.choices import Choice
from linearity_lab.charts.lines import GROWN_AXES, Axis, Line, RunNumber, width_axis
from linearity_lab.charts.style import Style, network_style, output_title
from linearity_lab.experiments.lettered_networks import NetworkPoint, Run, TrainedNetworks, runs_of
from linearity_lab.networks.differences import differences
from linearity_lab.networks.spec import ArchitectureSpec, grown_size
from ntk_core.networks.kinds import ARCHITECTURES


class ComparedNetworks(Protocol):
    """A spec with lettered networks, each with several outputs."""

    @property
    def networks(self) -> Mapping[str, ArchitectureSpec]: ...
    @property
    def outputs(self) -> Sequence[str]: ...


class LetteredPoint(Protocol):
    """A point of one network."""

    @property
    def network(self) -> str: ...


AnyPoint = TypeVar("AnyPoint", bound=LetteredPoint)


def network_title(spec: ComparedNetworks, letter: str) -> str:
    """Return the letter, the kind and what differs from networks of this kind."""
    return _lettered(spec, letter, [_kind_title(spec, letter), *_differences(spec, letter)])


def line_title(spec: ComparedNetworks, letter: str) -> str:
    """Return the letter and what differs: beside other networks of one kind without the kind."""
    kinds = {network.kind for network in spec.networks.values()}
    words = _differences(spec, letter)
    if len(kinds) > 1 or not words:
        words = [_kind_title(spec, letter), *words]
    return _lettered(spec, letter, words)


def _kind_title(spec: ComparedNetworks, letter: str) -> str:
    return ARCHITECTURES[spec.networks[letter].kind].title


def _differences(spec: ComparedNetworks, letter: str) -> list[str]:
    """Return what differs from networks of the same kind."""
    network = spec.networks[letter]
    alike = [other for other in spec.networks.values() if other.kind == network.kind]
    return differences(network, alike, but=("grows",))


def _lettered(spec: ComparedNetworks, letter: str, words: Sequence[str]) -> str:
    text = ", ".join(words)
    return f"{letter}: {text}" if len(spec.networks) > 1 else text


def line_style(spec: ComparedNetworks, letter: str, output: str) -> Style:
    """Return the style of a network with an output; networks of one kind are variants."""
    letters = list(spec.networks)
    kind = spec.networks[letter].kind
    before = [spec.networks[each].kind for each in letters[: letters.index(letter)]]
    title = line_title(spec, letter)
    if len(spec.outputs) > 1:
        title = f"{title}, {output_title(output)}"
    return network_style(kind, output, title, variant=before.count(kind))


def points_of(points: Sequence[AnyPoint], letter: str) -> list[AnyPoint]:
    """Return the points of a network, by width."""
    return [point for point in points if point.network == letter]


def line_names(spec: ComparedNetworks, points: Sequence[LetteredPoint]) -> list[tuple[str, str]]:
    """Return (letter, output) of every network with points."""
    return [
        (letter, output)
        for letter in spec.networks
        if points_of(points, letter)
        for output in spec.outputs
    ]


def measure_lines(
    spec: ComparedNetworks,
    points: Sequence[NetworkPoint[Run]],
    measure: RunNumber[Run],
    names: Sequence[tuple[str, str]],
) -> list[Line]:
    """Return the measure of all runs against width.

    Each (letter, output) of ``names`` has a line.
    """
    lines = []
    for letter, output in names:
        dots = measure.dots(runs_of(points, letter, output))
        lines.append(Line(line_style(spec, letter, output), dots))
    return lines


def grown_axis(spec: TrainedNetworks) -> Axis:
    """Return the axis of what grows in the networks: the width, or another size."""
    grown = grown_size(spec.architectures)
    return replace(GROWN_AXES.get(grown, width_axis()), values=spec.widths)


def network_choice(
    spec: ComparedNetworks, points: Sequence[LetteredPoint], name: str = "network"
) -> Choice[str]:
    """Return the choice of a network; ``name`` keeps those of several figures apart."""
    letters = [letter for letter in spec.networks if points_of(points, letter)]
    return Choice(
        name,
        "Network",
        letters,
        lambda letter: line_title(spec, letter),
        220,
        is_rare=len(letters) == 1,
    )
