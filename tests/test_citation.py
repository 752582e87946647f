"""Citations: all data that identify the run, in valid BibTeX."""

import re

from linearity_lab.citation import bibtex, cite_run
from linearity_lab.runs import EXPERIMENTS, PRESETS, Provenance, spec_digest
from tests.dashboard.made_results import make_points, make_result

PROVENANCE = Provenance(
    versions={"linearity-lab": "0.1.0", "jax": "0.10.2"},
    platform="Python 3.11 on a_b 100% {x",
    device="cpu: cpu",
    dtype="float32",
    started_at="2026-01-02T03:04:05+00:00",
    data_sha256="ab" * 32,
)


def empty_result(name: str):
    spec = PRESETS[name].spec
    result = EXPERIMENTS[spec.experiment].result
    return result(spec=spec, points=(), provenance=PROVENANCE, status="cancelled", runtime_s=1.0)


def test_a_citation_names_versions_seeds_digest_date_and_data():
    result = make_result(make_points(), seed=7, num_seeds=3)
    text = cite_run(result)
    for part in (
        spec_digest(result.spec),
        "kernel change",
        "seeds 7 to 9",
        "completed",
        "2026-01-02 03:04:05 UTC",
        "linearity-lab 0.1.0, jax 0.10.2",
        "cpu: cpu",
        "float32",
        "ab" * 32,
    ):
        assert part in text
    assert "missing" not in text
    assert len(text.splitlines()) == 3


def test_points_of_an_earlier_run_are_cited_with_its_versions():
    first, *rest = make_points()
    earlier = PROVENANCE.model_copy(
        update={"versions": {"jax": "0.9"}, "started_at": "2025-05-05T00:00:00+00:00"}
    )
    result = make_result((first.model_copy(update={"provenance": earlier}), *rest))
    assert "width=30: computed 2025-05-05 00:00:00 UTC by jax 0.9" in cite_run(result)
    assert "width=100, width=1000: computed 2026-01-02" in cite_run(result)
    assert "cancelled, 6 points missing" in cite_run(empty_result("liu-fig1-left"))


def test_bibtex_is_valid_and_has_the_papers_and_the_run():
    texts = {name: bibtex(empty_result(name)) for name in PRESETS}
    for text in texts.values():
        assert text.count("{") == text.count("}")
        assert re.search(r"(?<!\\)[%$#_&]", text) is None
    for name, keys in (
        ("zhu-fig2", ["liu2020linearity", "zhu2022transition"]),
        ("hu-fig1", ["hu2020surprising"]),
    ):
        run = spec_digest(PRESETS[name].spec)
        assert re.findall(r"^@\w+\{(.*),$", texts[name], re.MULTILINE) == [
            *keys,
            f"linearitylab-{run[:16]}",
        ]
        assert run in texts[name]
