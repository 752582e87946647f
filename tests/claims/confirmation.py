"""``python -m tests.claims.confirmation [PRESET ...]`` measures claims again on
seeds from 1,000 on.

Intervals were set on the runs of the gallery, which begin at seed 0. A confirmation computes the
same preset with fresh initializations and, where the data are synthetic, another data draw. Seeds
and their number are fixed by ``fresh`` before any computation; the measurements are stored in
``confirmed.json`` with their provenance.

A claim whose fresh interval is wide gets further seeds, by ``FURTHER``, or a caveat. No seed is
dropped.
"""

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from linearity_lab.cli.run_directory import RunDirectory, write_whole
from linearity_lab.runs import run
from linearity_lab.runs._parse import spec_digest
from linearity_lab.runs._table import PRESETS
from linearity_lab.runs.events import Ended
from linearity_lab.runs.gallery import GALLERY
from linearity_lab.runs.store import Store
from linearity_lab.settings.grammar import with_settings
from tests.claims.claim import CONFIRMED, Claim, claims

FIRST_SEED = 1000
LEAST = 8
# As many seeds as in the gallery: eight took more than four minutes when this was fixed.
AS_MANY = frozenset(
    (
        "horizon-cross-entropy",
        "hu-fig1",
        "hu-fig4-fashion",
        "hu-fig4-cnn",
        "hu-fig4-cifar",
        "hu-fig3-cnn",
        "hu-fig2",
        "hu-departure",
        "hu-fig4-cifar-cnn",
        "liu-cnn",
        "liu-distance",
        "liu-fig1-wide",
        "liu-lazy",
        "liu-resnet",
        "liu-section5",
        "liu-true-and-linearized",
        "transformer-width",
        "zhu-ball",
        "zhu-fig2",
        "zhu-preactivations",
    )
)
# Confirmed by fewer than eight seeds at first: all of their sentences again, on eight further
# seeds.
EIGHT_LATER = frozenset(
    (
        "catapult-map",
        "catapult-one-sample",
        "hu-fig3",
        "hu-fig5",
        "zhu-pl",
    )
)
EIGHT_LATER_SEED = 3000
# Presets with one seed, too slow for eight, whose sentences compare methods.
FEWER = {"beyond-gradient-descent": 4}
# Kernels of infinite width draw no weights: as many data draws take the place of seeds.
DATA_DRAWS = {"hu-claim31": LEAST, "hu-deep-kernel": LEAST, "hu-prop41": LEAST}
# Each of these seeds gives one number, from as many random networks as in the preset.
ONE_EACH = {"depth-width from 6000": LEAST}
# Sentences rewritten after a confirmation contradicted them, then confirmed on the next seeds.
REWRITTEN = {
    **dict.fromkeys(
        (
            "bottleneck-keeps-moving",
            "dropped-edges-hessian",
            "dropped-edges-kernel",
            "dropped-edges-kernel-at-first",
            "fashion",
            "depth-over-width-decides",
            "digits-depart-sooner",
            "graph-in-the-whole-ball",
            "infimum-vanishes",
            "one-curve-along-beta",
            "supremum-stays",
            "velocity-stays-with-swish",
        ),
        2000,
    ),
    # Contradicted on later seeds, or added to a preset whose other sentences were confirmed before.
    **dict.fromkeys(
        (
            "lecun-distance-vanishes",
            "nonlinear-graph-hessian-swish",
            "page-departure",
            "rich-finds-the-bits",
            "same-losses",
            "second-layer-without-mean",
            "softmax-of-the-linear-model-too",
            "time-scale-of-dimension",
        ),
        3000,
    ),
    "akin-to-the-teacher": 4000,
    "cifar-worse-at-the-end": 4000,
    "few-diverge-near-four": 4000,
    "nonlinear-graph-hessian": 4000,
    "adam-moves-further": 5000,
    "both-catapult": 5000,
    "momentum-kernel": 5000,
    "kernel-does-not-predict-nonlinear-outputs": 5000,
    "kernel-after-training-predicts-better": 5000,
    # Confirmed on fewer than eight seeds, or pairs of converged runs, at first; or added later.
    "exponential-in-depth-over-width": 6000,
    "convolutions-depart-sooner": 6000,
    "kernel-errs-a-little": 6000,
    "linearity-has-a-price": 6000,
    "width-makes-certain": 6000,
    "one-sample-comes-down": 5000,
}
# A sentence about part of a preset is confirmed on that part, with the more seeds; fixed before
# they are computed.
PARTS: dict[str, dict[str, Any]] = {
    "beyond-gradient-descent from 5000": {"num_seeds": LEAST, "widths": [3000]},
    "catapult-map from 4000": {"num_seeds": 20, "rates": [3.8], "models": ["quadratic"]},
    "catapult-map from 5000": {
        "num_seeds": LEAST,
        "rates": [2.2, 2.5, 3.0, 3.5, 3.8],
        "models": ["network", "quadratic"],
    },
    "catapult-one-sample from 5000": {
        "num_seeds": LEAST,
        "rates": [2.5, 3.5],
        "models": ["quadratic"],
    },
    "depth-width from 6000": {
        "num_seeds": 1,
        "depths": [1, 16, 64],
        "widths": [64, 1024],
        "trained_depth": 0,
    },
    "hu-departure from 4000": {"num_seeds": LEAST, "network.activations": ["erf", "tanh"]},
    "hu-fig1 from 3000": {"num_seeds": LEAST},
    # Some runs do not depart.
    "hu-fig3-cnn from 6000": {"num_seeds": 12},
    "hu-fig4-cifar from 4000": {"num_seeds": LEAST},
    "hu-theorem32 from 3000": {"num_seeds": LEAST, "values": [25, 50]},
    "hu-theorem35 from 3000": {"num_seeds": LEAST, "network.activations": ["erf"]},
    "learning-curves from 6000": {
        "num_seeds": LEAST,
        "widths": [1000],
        "richness": [0.5],
        "samples": [240],
    },
    "liu-distance from 3000": {"num_seeds": LEAST, "widths": [30, 100, 300, 3000]},
    "liu-fig1-left from 3000": {"widths": [10_000], "outputs": ["linear", "softmax"]},
    "zhu-nonlinear-output from 4000": {
        "num_seeds": 16,
        "widths": [32, 1000],
        "outputs": ["softmax"],
    },
    # The gallery has eight seeds in the ball; the fresh runs were computed with five.
    "liu-lemma31": {"num_ball_seeds": 5},
    "zhu-ball from 2000": {"widths": [50, 200]},
    "liu-theorem41-ball from 2000": {"num_seeds": 16},
    "zhu-fig2 from 2000": {"num_seeds": 5, "widths": [32, 128, 256, 512]},
    "price-of-linearity from 3000": {"num_seeds": 24, "richness": [0.5]},
    "price-of-linearity from 6000": {"num_seeds": 28, "widths": [5000]},
}
# More seeds, n from the width alone, for 0.85 of half the expected one by n^(-1/2); with one end 4
# times as many, or 8.
# Where the first batch has fewer than 8 runs of a sentence, or fewer than 8 seeds and it speaks of
# every run, the further ones make them 8.
FURTHER: dict[str, dict[str, int | list[str]]] = {
    "adapter-rank": {"num_seeds": 4, "num_trained": 4},
    "adapter-width": {"num_seeds": 12},
    "adding-adapters": {"num_seeds": 24},
    "adding-networks": {"num_seeds": 24},
    "assembly": {"num_seeds": 3},
    "attention-head-dim": {"num_seeds": 52},
    "attention-heads": {"num_seeds": 4, "num_trained": 4},
    "attention-length": {"num_seeds": 6, "num_trained": 6},
    "beyond-gradient-descent": {"num_seeds": 4},
    "convolution": {"num_seeds": 33},
    "depth-width": {"num_seeds": 12},
    "edge-of-stability": {"num_seeds": 24},
    "hu-departure": {"num_seeds": 5},
    "hu-fig1": {"num_seeds": 5},
    "hu-fig2": {"num_seeds": 7},
    "hu-fig4-cifar": {"num_seeds": 5},
    "hu-fig4-fashion from 2000": {"num_seeds": 5},
    "kernel-convergence-pair": {"num_seeds": 44},
    "kernel-velocity": {"num_seeds": 60},
    "kernel-velocity from 2000": {"num_seeds": 10},
    "liu-ball": {"num_seeds": 8, "num_ball_seeds": 8},
    "liu-cnn": {"num_seeds": 5},
    "liu-distance": {"num_seeds": 3},
    "liu-fig1-wide": {"num_seeds": 9, "outputs": ["linear"]},
    "liu-fig2": {"num_seeds": 12},
    "liu-lazy": {"num_seeds": 14},
    "liu-mixed": {"num_seeds": 24},
    "liu-section5": {"num_seeds": 6},
    "liu-theorem31": {"num_seeds": 18},
    "liu-theorem41": {"num_seeds": 420},
    "liu-theorem41-ball": {"num_seeds": 400, "num_ball_seeds": 1},
    "liu-theorem41-ball from 2000": {"num_seeds": 32, "num_ball_seeds": 32},
    "liu-true-and-linearized": {"num_seeds": 4},
    "transformer-width": {"num_seeds": 4},
    "zhu-bottleneck-neurons": {"num_seeds": 36},
    "zhu-preactivations": {"num_seeds": 5},
}
DRAWN = {
    "gaussian",
    "gaussian-mixture",
    "induction",
    "parity",
    "rademacher",
    "random-sequences",
    "single-index",
}


def groups() -> dict[str, tuple[str, int]]:
    """Return the groups of fresh runs by key: preset and first seed."""
    found = {}
    for claim in claims():
        first = first_seed(claim)
        found[key_of(claim.preset, first)] = (claim.preset, first)
    return found


def first_seed(claim: Claim) -> int:
    """Return the first of the fresh seeds that confirm a claim."""
    if claim.name in REWRITTEN:
        return REWRITTEN[claim.name]
    return EIGHT_LATER_SEED if claim.preset in EIGHT_LATER else FIRST_SEED


def key_of(preset: str, first: int) -> str:
    """Return the key of the group of fresh runs from this seed on."""
    return preset if first == FIRST_SEED else f"{preset} from {first}"


def fresh(name: str, first: int = FIRST_SEED) -> tuple[Any, ...]:
    """Return a preset with fresh seeds: at least ``LEAST``, or as many as before.

    Then ``FURTHER``.
    """
    spec: Any = PRESETS[name].spec
    if name in DATA_DRAWS:
        seeds = range(first, first + DATA_DRAWS[name])
        return tuple(with_settings(spec, {"seed": s, "dataset.seed": s}) for s in seeds)
    key = key_of(name, first)
    if key in ONE_EACH:
        seeds = range(first, first + ONE_EACH[key])
        of_seed = ({"seed": s, "dataset.seed": s} | PARTS[key] for s in seeds)
        return tuple(with_settings(spec, each) for each in of_seed)
    changes: dict[str, Any] = {"seed": first}
    if name in FEWER:
        changes["num_seeds"] = FEWER[name]
    elif name not in AS_MANY:
        changes["num_seeds"] = max(LEAST, spec.num_seeds)
    if spec.dataset.name in DRAWN:
        changes["dataset.seed"] = first
    batch = with_settings(spec, changes | PARTS.get(key, {}))
    further = FURTHER.get(key)
    return (
        (batch, with_settings(batch, {"seed": batch.seeds[-1] + 1, **further}))
        if further
        else (batch,)
    )


def confirm(key: str, results: Sequence[Any]) -> dict[str, Any]:
    """Return the measurements of all claims of a group on all of its fresh results,
    with their provenance.
    """
    batch, *further = (
        {
            "spec": spec_digest(result.spec),
            "seeds": [result.spec.seed, result.spec.num_seeds],
            "data_seed": result.spec.dataset.seed,
            "started_at": result.provenance.started_at,
            "versions": dict(result.provenance.versions),
        }
        for result in results
    )
    measured = {
        name: {"measure": claim.fingerprint, "measured": asdict(claim.reading.measure(*results))}
        for name, claim in _members(key).items()
    }
    return {**batch, **({"further": further} if further else {}), "claims": measured}


def is_current(key: str, kept: Mapping[str, Any] | None) -> bool:
    """Return whether the stored confirmation has the present measures on all planned seeds."""
    if kept is None:
        return False
    measures = {name: claim.fingerprint for name, claim in _members(key).items()}
    computed = [batch["spec"] for batch in (kept, *kept.get("further", ()))]
    return measures == {
        name: each["measure"] for name, each in kept["claims"].items()
    } and computed == [spec_digest(spec) for spec in fresh(*groups()[key])]


def _members(key: str) -> dict[str, Claim]:
    preset, first = groups()[key]
    return {
        claim.name: claim
        for claim in claims()
        if claim.preset == preset and first_seed(claim) == first
    }


def _computed(key: str, spec: Any, store: Store) -> Any:
    for event in run(spec, points=store.points(spec)):
        if isinstance(event, Ended) and event.status == "completed":
            return event.result
    raise SystemExit(f"{key} did not complete")


def main() -> None:
    """Confirm the groups, of these presets or all,
    whose measures or planned seeds differ from the stored ones.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.claims.confirmation")
    parser.add_argument("presets", nargs="*", choices=[[], *PRESETS], metavar="PRESET")
    parser.add_argument(
        "--from", dest="files", type=Path, nargs="*", default=(), help="run.jsonl of finished runs"
    )
    given = parser.parse_args()
    store = Store(GALLERY / ".runs" / "confirmation.sqlite")
    for path in given.files:
        store.save_result(RunDirectory(path.parent, "--from").result(), imported=True)
    for key, (preset, first) in groups().items():
        kept = json.loads(CONFIRMED.read_text(encoding="utf-8")) if CONFIRMED.exists() else {}
        if (given.presets and preset not in given.presets) or is_current(key, kept.get(key)):
            continue
        found = confirm(key, [_computed(key, spec, store) for spec in fresh(preset, first)])
        # The file may have changed meanwhile.
        kept = json.loads(CONFIRMED.read_text(encoding="utf-8")) if CONFIRMED.exists() else {}
        kept[key] = found
        text = json.dumps(
            dict(sorted(kept.items())), indent=1, ensure_ascii=False, default=_plain, allow_nan=True
        )
        write_whole(CONFIRMED, text + "\n", "confirmed.json")


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else float(value)


if __name__ == "__main__":
    main()
