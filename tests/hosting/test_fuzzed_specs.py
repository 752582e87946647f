"""Random specs: parsed, estimated, refused in sentences or accepted, never a traceback.

``python -m benchmarks.drills.fuzzed_specs`` tries ten thousand.
"""

import json

import pytest

from benchmarks.drills.fuzzed_specs import fuzz
from ntk_core.errors import InvalidInput
from ntk_core.runs import PRESETS, canonical_json, parse_spec
from ntk_core.settings.grammar import InvalidSpec


def test_every_fuzzed_spec_is_let_pass_or_refused_in_sentences():
    findings = fuzz(150, seed=1)
    assert findings.failures == []
    seen = {outcome for outcome, count in findings.outcomes.items() if count}
    assert {"command line: let pass", "command line: refused", "JSON: refused", "address: too large"} <= seen


def test_half_of_a_character_is_refused_and_written_out():
    """JSON may contain an unpaired surrogate, which neither browsers nor terminals can display."""
    data = json.loads(canonical_json(PRESETS["zhu-fig2"].spec))
    data["graph"]["edges"][0]["kind"] = "\ud800"
    with pytest.raises(InvalidSpec) as refused:
        parse_spec(json.dumps(data))
    for problem in refused.value.problems:
        assert str(problem).encode()
    with pytest.raises(InvalidSpec):
        parse_spec({"experiment": "dag", "activation": "\ud800"})


def test_a_sentence_stays_short_whatever_it_is_about():
    error = InvalidInput("9" * 5000, "x" * 5000, "less")
    assert len(str(error)) < 250
    assert parse_spec("{}")
