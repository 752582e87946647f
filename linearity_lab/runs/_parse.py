"""Parse specs from outside, write them as canonical JSON, and compute their digests."""

import contextlib
import difflib
import hashlib
import json
from collections.abc import Mapping

from linearity_lab.runs._documents import digest_json, migrated
from linearity_lab.runs._presets import Preset
from linearity_lab.runs._spec import ExperimentSpec, Spec
from linearity_lab.runs._table import EXPERIMENTS, KINDS, PRESETS
from linearity_lab.settings.grammar import InvalidSpec, validated
from ntk_core.errors import InvalidInput, kind_of

MAX_JSON_BYTES = 1_000_000


def parse_spec(data: object) -> Spec:
    """Parse JSON text or a mapping → spec, migrated from earlier versions.

    >>> parse_spec({"experiment": "kernel_change", "num_seeds": 2}).num_seeds
    2

    Args:
        data: JSON text or a mapping with ``experiment`` and settings.

    Returns:
        A spec of that experiment.

    Raises:
        InvalidSpec: with one sentence per setting: its dotted name, its value, the allowed values.

    Source: our choice, docs/decisions/0001-specs-and-events.md.
    """
    if isinstance(text := data, str | bytes):
        if len(text) > MAX_JSON_BYTES:
            raise InvalidSpec(
                (InvalidInput("spec", f"{len(text):,} bytes", f"at most {MAX_JSON_BYTES:,} bytes"),)
            )
        with contextlib.suppress(ValueError, RecursionError):
            data = json.loads(text)
    if not isinstance(data, dict):
        given = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        raise InvalidSpec(
            (InvalidInput("spec", given, "a JSON object with the settings of an experiment"),)
        )
    experiment = data.get("experiment", "kernel_change")
    if not (isinstance(experiment, str) and experiment in KINDS):
        raise InvalidSpec(
            (InvalidInput("experiment", experiment, "one of " + ", ".join(EXPERIMENTS)),)
        )
    kind = KINDS[experiment].spec
    return validated(kind, migrated(kind, data))


def spec_from(given: Spec | Preset[Spec] | Mapping[str, object] | str) -> Spec:
    """Return the spec itself, the spec of a preset or of its name, or a parsed mapping."""
    if isinstance(given, Preset):
        return given.spec
    if isinstance(given, str):
        if given in PRESETS:
            return PRESETS[given].spec
        near = difflib.get_close_matches(given, PRESETS, n=3, cutoff=0.4)
        meant = f", such as {', '.join(near)}" if near else ""
        raise InvalidInput(
            "spec",
            given,
            f"a spec, or the name of a preset{meant} (linearity_lab.presets() lists them)",
        )
    if isinstance(given, Mapping):
        return parse_spec(dict(given))
    if not isinstance(given, ExperimentSpec):
        raise InvalidInput(
            "spec", kind_of(given), "a spec such as KernelChangeSpec(), or the name of a preset"
        )
    return given


def canonical_json(spec: Spec) -> str:
    """Spec → canonical JSON: sorted names, no spaces, no unused settings.

    >>> from linearity_lab.experiments import KernelChangeSpec
    >>> parse_spec(canonical_json(KernelChangeSpec())) == KernelChangeSpec()
    True

    Args:
        spec: any spec.

    Returns:
        JSON on one line.

    Source: our choice, docs/decisions/0001-specs-and-events.md.
    """
    return json.dumps(spec.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))


def spec_digest(spec: Spec) -> str:
    """Return the name of a run: spec → SHA-256 of its JSON.

    A new setting with a default changes no digest.

    >>> from linearity_lab.experiments import KernelChangeSpec
    >>> len(spec_digest(KernelChangeSpec()))
    64

    Args:
        spec: any spec.

    Returns:
        64 hexadecimal digits.

    Source: our choice, docs/jobs-and-results.md.
    """
    return hashlib.sha256(digest_json(spec).encode()).hexdigest()
