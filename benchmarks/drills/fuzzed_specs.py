"""Random specs through all public inputs: command line, JSON, URL.

Each is parsed, estimated, checked against the limits, and refused in sentences or accepted;
nothing is traced or run.
"""

import collections
import contextlib
import io
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Never
from unittest import mock

import cyclopts
import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

from benchmarks.drills.report import conclude
from linearity_lab.cli import main
from linearity_lab.dashboard.jobs.limits import check_limits
from linearity_lab.dashboard.jobs.profile import PROFILES
from linearity_lab.runs import PRESETS, Spec, canonical_json, check_size, estimate, parse_spec
from linearity_lab.runs._experiment import Experiment
from linearity_lab.settings.grammar import (
    InvalidSpec,
    Setting,
    settings,
    spec_from_texts,
    text_of,
    values_of,
)
from linearity_lab.settings.validation import bounds
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import example_graphs, graph_data

MAX_SECONDS = 2.0  # of processor time for one spec: more would be a way to keep a server busy
TEXTS = st.text(max_size=20) | st.sampled_from(
    (
        "",
        "null",
        "true",
        "nan",
        "-inf",
        "1e400",
        "0x10",
        "1_000",
        "٣",
        "½",
        "1,2,3",
        "1;2;;3",
        ",,,",
        "1e18",
        "-0",
        "3.7",
        "9" * 25,
        "9" * 5000,
        "a" * 3000,
        "\x00",
        "\u202e",
        "💥",
        "'\"\\",
        "../../etc/passwd",
        "${HOME}",
        "{{7*7}}",
        "<script>",
        "{}",
        "linear",
        "softmax",
        "sine",
        "cifar2",
        "resnet",
        "bottleneck",
        "width=5",
        "=",
        "[" * 100_000,
    )
)
NUMBERS = st.sampled_from(
    (
        0,
        1,
        2,
        3,
        7,
        -1,
        0.5,
        1e-12,
        -0.0,
        99,
        101,
        1000,
        2**31,
        2**53 + 1,
        2**63,
        10**7,
        10**7 + 1,
        10**30,
        10**400,
        1e308,
        math.nan,
        math.inf,
        -math.inf,
    )
)
SPECS = st.sampled_from(
    [spec for preset in PRESETS.values() for spec in (preset.spec, preset.paper_spec)]
)
GRAPHS = st.sampled_from([graph_data(graph) for graph in example_graphs().values()])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | NUMBERS
    | TEXTS
    | GRAPHS
    | st.lists(st.integers(1, 10_000), max_size=30),
    lambda each: st.lists(each, max_size=5) | st.dictionaries(TEXTS, each, max_size=3),
    max_leaves=8,
)


@st.composite
def changed(draw: st.DrawFn, data: object) -> object:
    """Change one place of JSON data."""
    if isinstance(data, dict) and data:
        name = draw(st.sampled_from(list(data)))
        rest = {other: value for other, value in data.items() if other != name}
        kept = {**data, name: draw(changed(data[name]))}
        more = st.builds(lambda key, value: {**data, key: value}, TEXTS, VALUES)
        return draw(st.sampled_from([*[kept] * 8, rest]) | more)
    if isinstance(data, list) and data and draw(st.booleans()):
        at = draw(st.integers(0, len(data) - 1))
        return [*data[:at], draw(changed(data[at])), *data[at + draw(st.integers(0, 1)) :]]
    if isinstance(data, int | float) and draw(st.booleans()):
        return draw(st.sampled_from([data * 2, data * 10, data + 1, data - 1, data // 2]))
    return draw(VALUES)


@st.composite
def json_texts(draw: st.DrawFn) -> str:
    """Change a few places of a preset's JSON, sometimes one character."""
    data = json.loads(canonical_json(draw(SPECS)))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 4]))):
        data = draw(changed(data))
    text = json.dumps(data)
    at = draw(st.integers(0, len(text)))
    put = draw(st.sampled_from(["", "}", '"', "\\", "\ud800", "9" * 5000]))
    return text[:at] + put + text[at + 1 :] if draw(st.integers(0, 4)) == 0 else text


@st.composite
def texts_of(draw: st.DrawFn, base: Spec) -> dict[str, str]:
    """Draw names and texts of a URL or a command line."""
    held = values_of(base)
    chosen = draw(st.lists(st.sampled_from(settings(type(base))), min_size=1, max_size=6))
    texts = {each.name: draw(plausible(each) | odd(held.get(each.name))) for each in chosen}
    strange = draw(st.sampled_from(["", "preset", "job", "__class__", "a.b.c", "."]))
    return texts if strange == "" else {**texts, strange: draw(TEXTS)}


@st.composite
def plausible(draw: st.DrawFn, setting: Setting) -> str:
    """Draw options, numbers around the bounds, or a changed graph."""
    if setting.name == "graph":
        return json.dumps(draw(changed(draw(GRAPHS))))
    if setting.options:
        return ",".join(
            map(text_of, draw(st.lists(st.sampled_from(setting.options), min_size=1, max_size=5)))
        )
    low, high = bounds(setting.info)
    if low is None or high is None:
        return draw(odd(setting.info.default))
    between = st.floats(math.log(max(low, 1e-6)), math.log(max(high, 1e-6))).map(math.exp)
    number = st.sampled_from([low, high, low - 1, high + 1]) | between
    numbers = draw(st.lists(number, min_size=1, max_size=25 if setting.entry == "list" else 1))
    return ",".join(text_of(each if setting.entry == "number" else round(each)) for each in numbers)


def odd(held: object) -> st.SearchStrategy[str]:
    """Texts that are no value, or a value with a suffix."""
    text = text_of(held) if held is not None else ""
    return (
        TEXTS
        | NUMBERS.map(str)
        | st.sampled_from([text + end for end in ("", "0", ",", "-1", "e5", " ", text)])
    )


@st.composite
def arguments(draw: st.DrawFn, path: Path) -> list[str]:
    """Draw a command line: a preset or file, with settings; or nonsense."""
    target = draw(st.sampled_from([*PRESETS, str(path), "nothing", ""]))
    if target == "nothing":
        return draw(
            st.lists(st.sampled_from(["run", "show", "presets", "--set"]) | TEXTS, max_size=4)
        )
    path.write_text(draw(json_texts()), encoding="utf-8", errors="surrogatepass")
    base = PRESETS[target].spec if target in PRESETS else draw(SPECS)
    given = [f"{name}={text}" for name, text in draw(texts_of(base)).items()]
    flags = draw(st.sampled_from([[], ["--paper"], ["--json"], ["--paper", "--json"]]))
    return ["run", target, *flags, *(["--set", *given] if draw(st.booleans()) else [])]


@dataclass
class Findings:
    """Outcomes of the specs."""

    # By input and outcome.
    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)  # one example of each other ending
    slowest_s: float = 0.0  # longest processor time of one spec

    def check(self, data: st.DataObject, path: Path) -> None:
        """Draw one request, send it through its input, and note its outcome."""
        entry = data.draw(st.sampled_from(["command line", "JSON", "address", "address"]))
        attempt: Callable[[], str]
        if entry == "command line":
            attempt = partial(_by_command_line, data.draw(arguments(path)))
        elif entry == "JSON":
            attempt = partial(_by_json, data.draw(json_texts()))
        else:
            base = data.draw(SPECS)
            attempt = partial(_by_address, base, data.draw(texts_of(base)))
        took_s: list[float] = []
        # The first may load modules.
        while not took_s or (took_s[-1] > MAX_SECONDS and len(took_s) < 2):
            began = time.thread_time()
            outcome = attempt()
            took_s.append(time.thread_time() - began)
        self.slowest_s = max(self.slowest_s, min(took_s))
        self.outcomes[f"{entry}: {outcome}"] += 1
        assert min(took_s) <= MAX_SECONDS, f"took {min(took_s):.1f} s"


def fuzz(count: int, seed: int) -> Findings:
    """Send ``count`` specs through the inputs; equal seeds draw equal specs."""
    findings = Findings()
    phases = (Phase.generate, Phase.shrink)
    options = hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    with tempfile.TemporaryDirectory() as folder, nothing_computed():
        checked = hypothesis.given(st.data())(
            lambda data: findings.check(data, Path(folder) / "spec.json")
        )
        try:
            hypothesis.seed(seed)(options(checked))()
        except Exception as error:
            findings.failures.append(
                "\n".join([repr(error), *getattr(error, "__notes__", ())])[:5000]
            )
    return findings


@contextlib.contextmanager
def nothing_computed() -> Iterator[None]:
    """End runs where they would load data and start JAX."""

    def load(spec: Spec) -> Never:
        raise InvalidInput("run", spec.experiment, "nothing, in this drill")

    with mock.patch.object(Experiment, "computation", return_value=mock.Mock(load=load)):
        yield


def _by_command_line(arguments: list[str]) -> str:
    output = io.StringIO()
    errors = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code: object = main(arguments)
        except SystemExit as ended:
            code = ended.code
    if code == 0 and arguments[:1] == ["presets"]:
        return "listed"
    if code == 1:
        assert "nothing, in this drill" in errors.getvalue(), errors.getvalue()
        return "let pass"
    assert code == 2, f"exit code {code}"
    assert errors.getvalue().strip(), "refused without a word"
    assert "Traceback" not in errors.getvalue()
    return "refused"


def _by_json(text: str) -> str:
    try:
        spec = parse_spec(text)
    except InvalidSpec as refusal:
        _check_sentences(refusal.problems)
        return "refused"
    assert parse_spec(canonical_json(spec)) == spec
    return _estimated(spec)


def _by_address(base: Spec, texts: dict[str, str]) -> str:
    spec, problems = spec_from_texts(texts, base)
    if problems:
        _check_sentences(problems)
    return _estimated(spec)


def _check_sentences(problems: Sequence[InvalidInput]) -> None:
    assert problems, "refused without a word"
    for problem in problems:
        str(problem).encode()  # a browser and a terminal can show it
        assert len(str(problem)) < 2000, "a sentence too long to read"


def _estimated(spec: Spec) -> str:
    cost = estimate(spec)
    assert 0 <= cost.seconds < math.inf
    assert 0 <= cost.peak_bytes < math.inf
    outcome = "let pass"
    for check in (
        *(partial(check_limits, spec, each) for each in PROFILES.values()),
        partial(check_size, spec),
    ):
        try:
            check()
        except InvalidInput:
            outcome = "too large"
    return outcome


def drill(*, count: int = 10_000, seed: int = 0) -> None:
    """Fuzz, and report the outcomes."""
    began = time.perf_counter()
    findings = fuzz(count, seed)
    found = {
        "outcomes": dict(sorted(findings.outcomes.items())),
        "slowest_s": round(findings.slowest_s, 4),
    }
    measured = {
        "count": count,
        "seed": seed,
        **found,
        "seconds": round(time.perf_counter() - began, 1),
    }
    claims = {
        f"each of {count:,} specs was let pass or refused in sentences": not findings.failures,
        f"none took {MAX_SECONDS:g} s of processor time": findings.slowest_s < MAX_SECONDS,
    }
    conclude("fuzzed_specs", {**measured, "failures": findings.failures}, claims)


if __name__ == "__main__":
    cyclopts.run(drill)
