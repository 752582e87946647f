"""Citations of runs: content, versions, seeds, data and digest."""

from pathlib import Path

from linearity_lab.runs import (
    Provenance,
    ResultValue,
    SeededSpec,
    experiment_of,
    spec_digest,
)
from ntk_core.numbers import duration

# BibTeX counts braces even after a backslash.
_TEX = str.maketrans(
    {
        **{letter: "\\" + letter for letter in "&%$#_"},
        "{": "(",
        "}": ")",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\\": r"\textbackslash{}",
    }
)


def cite_run(result: ResultValue) -> str:
    """Cite a run in a few lines.

    Experiment, points, seeds, date, versions, device, digest, data fingerprint.

    Points from an earlier run are listed with its date and versions.
    """
    origins = result.origins
    missing = len(result.spec.point_keys()) - len(result.points)
    first = int(getattr(result.spec, "seed", 0))
    count = int(getattr(result.spec, "num_seeds", 1))
    seeds = f"seed {first}" if count == 1 else f"seeds {first} to {first + count - 1}"
    lines = [
        f"Linearity Lab, run {spec_digest(result.spec)} "
        f"({result.spec.experiment.replace('_', ' ')}; {seeds}; "
        f"{result.status}{f', {missing} points missing' if missing else ''})."
    ]
    for origin, keys in origins:
        which = f"{', '.join(keys)}: computed" if len(origins) > 1 else "Computed"
        lines.append(f"{which} {_origin(origin)}.")
    data = result.provenance.data_sha256
    lines.append(
        "Schema version "
        f"{result.spec.schema_version}{f'; SHA-256 of the data {data}' if data else ''}."
    )
    return "\n".join(lines)


def provenance_sentence(result: ResultValue) -> str:
    """Return when, where and by which versions a result was computed.

    The digests of its spec and data follow.
    """
    origin = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    data = f" · data {origin.data_sha256[:12]}" if origin.data_sha256 else ""
    earlier = sum(len(keys) for other, keys in result.origins if other != origin)
    taken = (
        f" · {earlier} of {len(result.points)} points taken over from earlier runs"
        if earlier
        else ""
    )
    imported = f" · {result.imported_words}" if result.num_imported else ""
    scope = f" · intervals {result.spec.scope}" if isinstance(result.spec, SeededSpec) else ""
    kind, _, name = origin.device.partition(": ")
    device = kind if name == kind else origin.device
    return (
        f"Computed {origin.started_at.replace('T', ' ').replace('+00:00', ' UTC')} in "
        f"{duration(result.runtime_s)} on {device}, {origin.dtype} · {versions} · "
        f"{origin.platform} · spec {spec_digest(result.spec)[:12]}{data}{scope}{taken}{imported}"
    )


def bibtex(result: ResultValue) -> str:
    """Return BibTeX entries of the run's papers and of the run itself."""
    run = spec_digest(result.spec)
    origin = result.provenance
    entry = (
        f"@software{{linearitylab-{run[:16]},\n"
        f"  title   = {{Linearity Lab: {_tex(result.spec.experiment.replace('_', ' '))}}},\n"
        f"  version = {{{_tex(origin.versions.get('linearity-lab', ''))}}},\n"
        f"  year    = {{{_tex(origin.started_at[:4])}}},\n"
        f"  note    = {{{_tex(' '.join(cite_run(result).splitlines()))}}}\n"
        "}"
    )
    papers = (
        Path(__file__).with_name("papers.bib").read_text(encoding="utf-8").strip().split("\n\n")
    )
    sources = experiment_of(result.spec).sources
    cited = [paper for paper in papers if paper.partition("{")[2].startswith(sources)]
    return "\n\n".join([*cited, entry]) + "\n"


def _origin(origin: Provenance) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    date = origin.started_at.replace("T", " ").replace("+00:00", " UTC")
    imported = ", imported from a file" if origin.imported else ""
    return (
        f"{date} by {versions} on {origin.device} in {origin.dtype} ({origin.platform}){imported}"
    )


def _tex(text: str) -> str:
    return text.translate(_TEX)
