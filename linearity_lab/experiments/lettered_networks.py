"""A base for experiments that compare networks on the same data, each named by a letter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from linearity_lab.networks.spec import GROWN_TITLES, ArchitectureSpec, grown_size
from linearity_lab.runs import SweepSpec, point_key

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
