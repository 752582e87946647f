"""Random specs through all public inputs: command line, JSON, URL of a page.

    python -m benchmarks.drills.fuzzed_specs [--count 10000] [--seed 0]

Each is parsed, estimated, held against the limits, and refused in sentences or let pass; nothing is traced or run.
A verdict: no exception but the refusals, no estimate that is not a number, none that takes long.
"""

from __future__ import annotations

import collections
import contextlib
import io
import json
import math
import random
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import cyclopts

from benchmarks.drills.report import conclude
from linearity_lab.jobs.limits import check_limits
from linearity_lab.jobs.profile import PROFILES
from ntk_core.cli import main
from ntk_core.errors import InvalidInput
from ntk_core.networks.graphs import example_graphs, graph_data
from ntk_core.runs import PRESETS, canonical_json, check_size, estimate, parse_spec
from ntk_core.runs._table import Experiment
from ntk_core.settings.grammar import InvalidSpec, Setting, settings, spec_from_texts, text_of, values_of
from ntk_core.settings.validation import bounds

MAX_SECONDS = 2.0  # of processor time for one spec: more would be a way to keep a server busy
_ODD_TEXTS = (
    "", " ", "none", "null", "true", "nan", "inf", "-inf", "1e400", "-1e400", "1e-400", "0x10", "1_000", "٣", "½", "१२",
    "1,2,3", "1;2;;3", ",,,", "1e3", "1e7", "1e18", "0", "-0", "-1", "0.5", "3.7", "9" * 25, "9" * 400, "9" * 5000,
    "a" * 3000, "\x00", "\n", "\u202e", "💥", "'\"\\", "../../etc/passwd", "${HOME}", "{{7*7}}", "<script>", "[]", "{}",
    "linear", "softmax", "relu", "sine", "digits", "cifar2", "resnet", "bottleneck", "auto", "width=5", "=", "--out",
)  # fmt: skip
_ODD_NUMBERS = (
    0, 1, 2, 3, 7, -1, 0.5, 0.1, 1e-12, -0.0, 99, 100, 101, 1000, 2**31 - 1, 2**31, 2**53 + 1, 2**63, 10**7, 10**7 + 1,
    10**30, 10**400, 1e308, -1e308, math.nan, math.inf, -math.inf,
)  # fmt: skip


@dataclass
class Findings:
    """What became of the specs.

    Attributes:
        outcomes: input and outcome → how often.
        failures: what ended otherwise, with its input and its traceback.
        slowest_s: the longest processor time that one spec took, in seconds.
    """

    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[dict[str, str]] = field(default_factory=list)
    slowest_s: float = 0.0
    slowest: str = ""

    def note(self, entry: str, attempt: Callable[..., str], *given: Any) -> None:
        """Run ``attempt(*given)`` and keep how it ended."""
        began, shown = time.thread_time(), f"{given[-1]!r}"[:2000]
        try:
            outcome = attempt(*given)
        except Exception:
            outcome = "failed"
            self.failures.append({"input": entry, "given": shown, "traceback": traceback.format_exc()})
        took = time.thread_time() - began
        if (
            took > MAX_SECONDS
        ):  # what is loaded once, or collected now and then, is not of the spec: it costs that again
            began = time.thread_time()
            with suppress(Exception):
                attempt(*given)
            took = min(took, time.thread_time() - began)
        if took > self.slowest_s:
            self.slowest_s, self.slowest = took, f"{entry}: {shown[:300]}"
        if took > MAX_SECONDS:
            self.failures.append({"input": entry, "given": shown, "traceback": f"took {took:.1f} s"})
        self.outcomes[f"{entry}: {outcome}"] += 1


class Fuzzer:
    """Draws random requests; equal seeds draw equal requests."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._specs = [spec for preset in PRESETS.values() for spec in (preset.spec, preset.paper_spec)]
        self._graphs = [graph_data(graph) for graph in example_graphs().values()]

    def spec_data(self) -> Any:
        """JSON of a preset with a few places changed."""
        data: Any = json.loads(canonical_json(self._random.choice(self._specs)))
        for _ in range(self._random.choice([1, 1, 1, 2, 3, 6])):
            data = self._changed(data)
        return data

    def json_text(self) -> str:
        """The same as text, sometimes cut or with a character changed."""
        text = json.dumps(self.spec_data())
        if self._random.random() < 0.2:
            at = self._random.randrange(len(text))
            text = text[:at] + self._random.choice(["", "}", '"', "\\", "\ud800", "9" * 5000]) + text[at + 1 :]
        if self._random.random() < 0.02:
            text = "[" * self._random.randint(1, 100_000)
        return text

    def texts(self, base: Any) -> dict[str, str]:
        """Names and texts of an address."""
        held, texts = values_of(base), {}
        for setting in self._random.sample(settings(type(base)), self._random.randint(1, 6)):
            plausible = self._random.random() < 0.7
            texts[setting.name] = self._plausible(setting) if plausible else self._text(held.get(setting.name))
        if self._random.random() < 0.2:
            texts[self._random.choice(["preset", "job", "__class__", "a.b.c", "", "."])] = self._text(None)
        return texts

    def _plausible(self, setting: Setting) -> str:
        """A choice, or numbers at the bounds, one beyond, and anywhere between them; a graph with a place changed."""
        if setting.name == "graph":
            return json.dumps(self._changed(self._random.choice(self._graphs)))
        if setting.options:
            return ",".join(map(text_of, self._random.choices(setting.options, k=self._random.choice([1, 1, 1, 2, 5]))))
        low, high = bounds(setting.info)
        if low is None or high is None:
            return self._text(setting.info.default)
        numbers = []
        for _ in range(self._random.choice([1, 1, 2, 6, 25]) if setting.entry == "list" else 1):
            between = math.exp(self._random.uniform(math.log(max(low, 1e-6)), math.log(max(high, 1e-6))))
            number = self._random.choice([low, high, low - 1, high + 1, between, between, between])
            numbers.append(number if setting.entry == "number" else round(number))
        return ",".join(map(text_of, numbers))

    def arguments(self, path: Path) -> list[str]:
        """Arguments of the command line: a preset, or a file with a spec, and settings; at times nonsense."""
        if self._random.random() < 0.05:
            words = ["run", "show", "presets", "--set", *_ODD_TEXTS]
            return self._random.choices(words, k=self._random.randint(0, 4))
        target = self._random.choice([*PRESETS, str(path), "nothing", ""])
        if target == str(path):
            path.write_text(self.json_text(), encoding="utf-8", errors="surrogatepass")
        base = PRESETS[target].spec if target in PRESETS else self._random.choice(self._specs)
        given = [f"{name}={text}" for name, text in self.texts(base).items()]
        flags = [flag for flag in ("--paper", "--json") if self._random.random() < 0.3]
        return ["run", target, *flags, *(["--set", *given] if self._random.random() < 0.8 else [])]

    def base(self) -> Any:
        """What a page starts from: a preset."""
        return self._random.choice(self._specs)

    def _text(self, held: Any) -> str:
        odd = self._random.random() < 0.5
        if odd or held is None:
            number = self._random.random() < 0.4
            return str(self._random.choice(_ODD_NUMBERS)) if number else self._random.choice(_ODD_TEXTS)
        text = text_of(held)
        return text * self._random.choice([1, 1, 2]) + self._random.choice(["", "", "0", ",", "-1", "e5", " "])

    def _changed(self, data: Any) -> Any:
        """``data`` with one place of it changed."""
        if isinstance(data, dict) and data and self._random.random() < 0.85:
            name = self._random.choice(list(data))
            what = self._random.random()
            if what < 0.1:
                return {other: value for other, value in data.items() if other != name}
            if what < 0.2:
                return {**data, self._random.choice([*_ODD_TEXTS, *data]): self._value()}
            return {**data, name: self._changed(data[name])}
        if isinstance(data, list) and data and self._random.random() < 0.7:
            at = self._random.randrange(len(data))
            return [*data[:at], self._changed(data[at]), *data[at + self._random.choice([0, 1]) :]]
        if isinstance(data, int | float) and not isinstance(data, bool) and self._random.random() < 0.5:
            return self._random.choice([data * 2, data * 10, data + 1, data - 1, data // 2])
        return self._value()

    def _value(self, depth: int = 0) -> Any:
        kind = self._random.randrange(8 if depth < 3 else 4)
        match kind:
            case 0 | 1:
                return self._random.choice(_ODD_NUMBERS)
            case 2:
                return self._random.choice(_ODD_TEXTS)
            case 3:
                return self._random.choice([None, True, False])
            case 4:
                return [self._value(depth + 1) for _ in range(self._random.choice([0, 1, 2, 3, 30]))]
            case 5:
                return {self._random.choice(_ODD_TEXTS): self._value(depth + 1) for _ in range(3)}
            case 6:
                return self._random.sample(range(1, 10_000), self._random.randint(1, 5))
            case _:
                return self._random.choice(self._graphs)


def fuzz(count: int, seed: int) -> Findings:
    """Send ``count`` specs through the inputs, round-robin."""
    fuzzer, findings = Fuzzer(seed), Findings()
    with tempfile.TemporaryDirectory() as directory, nothing_computed():
        for index in range(count):
            match index % 4:
                case 0:
                    findings.note("command line", _by_command_line, fuzzer.arguments(Path(directory) / "spec.json"))
                case 1:
                    findings.note("JSON", _by_json, fuzzer.json_text())
                case _:
                    base = fuzzer.base()
                    findings.note("address", _by_address, base, fuzzer.texts(base))
    return findings


@contextlib.contextmanager
def nothing_computed() -> Iterator[None]:
    """A run ends where it would load its data and start JAX."""

    def refuse(_: Experiment) -> Any:
        def load(spec: Any) -> Any:
            raise InvalidInput("run", spec.experiment, "nothing, in this drill")

        return mock.Mock(load=load)

    with mock.patch.object(Experiment, "computation", refuse):
        yield


def _by_command_line(arguments: list[str]) -> str:
    output, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(complaints):
        try:
            code: object = main(arguments)
        except SystemExit as ended:  # as argparse ends
            code = ended.code
    if code == 0 and arguments[:1] == ["presets"]:
        return "listed"
    if code == 1:
        assert "nothing, in this drill" in complaints.getvalue(), complaints.getvalue()
        return "let pass"
    assert code == 2, f"exit code {code}"
    assert complaints.getvalue().strip(), "refused without a word"
    assert "Traceback" not in complaints.getvalue()
    return "refused"


def _by_json(text: str) -> str:
    try:
        spec = parse_spec(text)
    except InvalidSpec as refusal:
        _check_sentences(refusal.problems)
        return "refused"
    assert parse_spec(canonical_json(spec)) == spec
    return _estimated(spec)


def _by_address(base: Any, texts: dict[str, str]) -> str:
    spec, problems = spec_from_texts(texts, base)
    if problems:
        _check_sentences(problems)
    return _estimated(spec)


def _check_sentences(problems: Sequence[InvalidInput]) -> None:
    assert problems, "refused without a word"
    for problem in problems:
        str(problem).encode()  # a browser and a terminal can show it
        assert len(str(problem)) < 2000, "a sentence too long to read"


def _estimated(spec: Any) -> str:
    cost = estimate(spec)
    assert math.isfinite(cost.seconds), "seconds"
    assert math.isfinite(cost.peak_bytes), "bytes"
    assert cost.seconds >= 0 <= cost.peak_bytes
    refused = False
    for limits in PROFILES.values():
        try:
            check_limits(spec, limits)
        except InvalidInput:
            refused = True
    try:
        check_size(spec)
    except InvalidInput:
        refused = True
    return "too large" if refused else "let pass"


def drill(*, count: int = 10_000, seed: int = 0) -> None:
    """Fuzz, and say what came out."""
    began = time.perf_counter()
    findings = fuzz(count, seed)
    conclude(
        "fuzzed_specs",
        {
            "count": count,
            "seed": seed,
            "outcomes": dict(sorted(findings.outcomes.items())),
            "slowest_s": round(findings.slowest_s, 4),
            "seconds": round(time.perf_counter() - began, 1),
            "failures": findings.failures,
        },
        {
            f"each of {count:,} specs was let pass or refused in sentences": not findings.failures,
            f"none took {MAX_SECONDS:g} s of processor time": findings.slowest_s < MAX_SECONDS,
        },
    )


if __name__ == "__main__":
    cyclopts.run(drill)
