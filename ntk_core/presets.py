"""Figures of the papers as specs, one name each, in the order of the papers."""

from __future__ import annotations

from dataclasses import dataclass

from ntk_core.errors import InvalidInput
from ntk_core.specs import KernelDriftSpec, Spec


@dataclass(frozen=True)
class Preset:
    """A named spec with its claim.

    Attributes:
        title: a few words for a menu.
        claim: what the figure must show, for people.
        source: paper and figure or section.
        our_choice: the settings that the source does not state.
        spec: sized for two cores.
        paper_spec: the paper's sizes, for a GPU or a patient CPU.
    """

    name: str
    title: str
    claim: str
    source: str
    our_choice: str
    spec: Spec
    paper_spec: Spec


_LIU_CHOICES = (
    "The data's law (mixture of Gaussians with centers of norm 2, d, s, n = 60, C = 3), the learning rate, the loss "
    "threshold and the number of runs are our choice; widths and networks are the paper's."
)


def _table() -> dict[str, Preset]:
    found = (
        Preset(
            "liu-fig1-left",
            "Kernel change against width",
            "With a linear output the tangent kernel stops moving as the width grows; with a softmax or swish output "
            "it keeps moving at every width.",
            "Liu, Zhu & Belkin 2020, Fig. 1 left",
            _LIU_CHOICES,
            KernelDriftSpec(widths=(30, 100, 300, 1000, 3000, 10_000)),
            KernelDriftSpec(widths=(30, 100, 1000, 10_000, 100_000, 1_000_000)),
        ),
        Preset(
            "liu-fig1-right",
            "Kernel change during training",
            "At width 10⁴ the kernel of the linear-output network stays where it was during the whole training, those "
            "of the softmax and swish networks leave at once.",
            "Liu, Zhu & Belkin 2020, Fig. 1 right",
            _LIU_CHOICES,
            KernelDriftSpec(widths=(10_000,)),
            KernelDriftSpec(widths=(10_000,), num_seeds=10),
        ),
    )
    return {preset.name: preset for preset in found}


PRESETS = _table()


def presets() -> dict[str, Spec]:
    """Specs of the papers' figures by name, sized for two cores: ``{"liu-fig1-left": spec, …}``."""
    return {name: preset.spec for name, preset in PRESETS.items()}


def preset(name: str, field: str = "preset") -> Preset:
    """The preset of that name.

    Raises:
        InvalidInput: for an unknown name.
    """
    if name not in PRESETS:
        raise InvalidInput(field, name, "one of " + ", ".join(PRESETS))
    return PRESETS[name]
