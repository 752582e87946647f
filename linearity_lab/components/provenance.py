"""Origin of the shown numbers."""

import streamlit as st

from linearity_lab.words.sentences import plain
from ntk_core.numbers import duration
from ntk_core.runs import ResultValue, SeededSpec, spec_digest


def provenance_sentence(result: ResultValue) -> str:
    """Return when, where and by which versions a result was computed, and the digests of its spec and data."""
    origin = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    data = f" · data {origin.data_sha256[:12]}" if origin.data_sha256 else ""
    earlier = sum(len(keys) for other, keys in result.origins if other != origin)
    taken = f" · {earlier} of {len(result.points)} points taken over from earlier runs" if earlier else ""
    scope = f" · intervals {result.spec.scope}" if isinstance(result.spec, SeededSpec) else ""
    kind, _, name = origin.device.partition(": ")
    device = kind if name == kind else origin.device
    return (
        f"Computed {origin.started_at.replace('T', ' ').replace('+00:00', ' UTC')} in {duration(result.runtime_s)} on "
        f"{device}, {origin.dtype} · {versions} · {origin.platform} · "
        f"spec {spec_digest(result.spec)[:12]}{data}{scope}{taken}"
    )


def provenance_footer(result: ResultValue) -> None:
    """Show the provenance below a page's figures."""
    st.caption(plain(provenance_sentence(result)))
