"""Words that tell networks apart: ``rank 16``, ``scores / √d``, ``ReLU``."""

from collections.abc import Callable, Mapping, Sequence

from linearity_lab.networks.spec import ArchitectureSpec
from linearity_lab.settings.grammar import text_of
from ntk_core.networks.choices import ACTIVATIONS, SUB_MODELS

_ROOTS = {0.0: "", 0.5: " / √{}", 1.0: " / {}"}


def _divided(what: str, by: str) -> Callable[[float], str]:
    """Return the words for an exponent: 1/2 divides by a root."""

    def words(exponent: float) -> str:
        ending = _ROOTS.get(exponent, f" / {{}}^{exponent:g}")
        return what + ending.format(by)

    return words


def _widths(factors: Sequence[float] | None) -> str:
    """Return the widths of hidden layers, such as ``widths m, 8 m``."""
    if factors is None:
        return "equal widths"
    return "widths " + ", ".join("m" if factor == 1 else f"{factor:g} m" for factor in factors)


# Setting → words for one of its values; others are named by their title.
_WORDS: Mapping[str, Callable[..., str]] = {
    "activation": lambda name: ACTIVATIONS[name].title,
    "sub_model": lambda name: SUB_MODELS[name].title,
    "adapter_rank": "rank {}".format,
    "layer_width": "layers of {:,} neurons".format,
    "relative_widths": _widths,
    "depth": "{} hidden layers".format,
    "num_heads": "{} heads".format,
    "head_dim": "head dimension {}".format,
    "bottleneck_width": "bottleneck width {}".format,
    "score_exponent": _divided("scores", "d"),
    "rank_exponent": _divided("B A", "r"),
}


def differences(
    network: ArchitectureSpec, others: Sequence[ArchitectureSpec], but: Sequence[str] = ()
) -> list[str]:
    """Return the settings of a network that differ among ``others``, in words, ``but`` some."""
    found = []
    for name, info in type(network).model_fields.items():
        value = getattr(network, name)
        if not info.title or not network.uses(name) or name in but:
            continue
        if all(getattr(other, name) == value for other in others):
            continue
        if name in _WORDS:
            found.append(_WORDS[name](value))
        else:
            value_text = f"{value:g}" if isinstance(value, float) else text_of(value)
            found.append(f"{info.title[:1].lower()}{info.title[1:]} = {value_text}")
    return found
