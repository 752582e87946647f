"""Short names of settings in URLs, the same for every experiment.

``architecture=cnn&activation=relu``.
"""

from collections.abc import Mapping

from linearity_lab.settings.part import SpecPart
from linearity_lab.settings.walk import Setting, settings

# Short name → dotted names, of which the first that an experiment has is meant.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "data": ("dataset.name",),
    "dataset": ("dataset.name",),
    "architecture": (
        "architecture.kind",
        "networks.0.kind",
        "architectures.0.kind",
        "network.kind",
    ),
    "network": ("architecture.kind", "networks.0.kind", "architectures.0.kind", "network.kind"),
    "activation": (
        "architecture.activation",
        "networks.0.activation",
        "architectures.0.activation",
        "network.activation",
    ),
    "outputs": ("outputs", "output", "networks.0.output"),
    "output": ("output", "outputs", "networks.0.output"),
    "depth": ("architecture.depth", "networks.0.depth", "architectures.0.depth"),
    "layers": ("architecture.depth", "networks.0.depth", "architectures.0.depth"),
    "samples": ("dataset.num_samples",),
    "seeds": ("num_seeds",),
}
PICKS = ("data", "network", "outputs", "activation")  # which pages share


def setting_named(model: type[SpecPart], name: str) -> str:
    """Return the dotted name that a short name means in this experiment.

    An unknown name unchanged.
    """
    known = {setting.name for setting in settings(model)}
    if name in known:
        return name
    return next((each for each in ALIASES.get(name, ()) if each in known), name)


def usual_texts(model: type[SpecPart], texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of a URL by dotted names, with names of choices instead of their titles."""
    known = {setting.name: setting for setting in settings(model)}
    found = {}
    for name, text in texts.items():
        dotted = setting_named(model, name)
        setting = known.get(dotted)
        found[dotted] = text if setting is None else _usual(setting, text)
    return found


def _usual(setting: Setting, text: str) -> str:
    """Return the names of choices that are given by name or title in any case.

    ``CNN`` for ``convnet``.
    """
    if setting.entry not in ("choice", "choices"):
        return text
    by_words = {}
    for option in setting.options:
        title = setting.label(option).removesuffix(setting.common_ending).strip()
        for words in (title, setting.label(option), str(option)):
            by_words[words.lower()] = str(option)
    parts = [part.strip() for part in text.split(",")]
    if setting.entry == "choice":
        parts = parts[-1:]  # of several outputs the last one
    return ",".join(by_words.get(part.lower(), part) for part in parts)
