"""The command line: output, exit codes, errors."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ntk_core import __version__
from ntk_core.cli import main
from ntk_core.cli._main import COMMANDS
from ntk_core.dynamics.choices import TrainingSpec
from ntk_core.experiments.kernel_change import KernelChangeResult
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import PRESETS, canonical_json, spec_digest
from ntk_core.runs.events import Ended, parse_event
from ntk_core.runs.store import Store, read_line
from tests.compiler_flags import QUICK_ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--set", "widths=10,20", "num_seeds=1", "outputs=linear", "training.max_steps=50", "training.num_records=4"]
SLOW = KernelChangeSpec(
    widths=(3, 3000),  # a quick point, then one of half a minute
    outputs=("linear",),
    num_seeds=1,
    training=TrainingSpec(max_steps=30_000, num_records=200, loss_threshold=1e-9, learning_rate=1e-6),
)
FAST_POINT_S = 60.0


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "ntk_core", *map(str, arguments)]


def fails(capsys, *arguments: object) -> list[str]:
    """Errors of a command that must end with exit code 2, one per line."""
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.endswith("\n")
    lines = err.splitlines()
    # Some sentences list every setting; none may repeat thousands of characters of input.
    assert all(line.isprintable() and len(line) < 2000 for line in lines)
    return lines


def written(out: Path) -> KernelChangeResult:
    found = read_line((out / "run.jsonl").read_text())
    assert isinstance(found, KernelChangeResult)
    return found


def wait_until_kept(spec: KernelChangeSpec, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    store = Store()
    while not store.points_of(spec_digest(spec)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    store.close()


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    out = tmp_path_factory.mktemp("run") / "new" / "out"
    done = subprocess.run(
        command("run", "liu-fig1-left", *TINY, "--out", out, "--json"),
        cwd=ROOT,
        env={**os.environ, **QUICK_ENVIRONMENT},
        capture_output=True,
        check=False,
    )
    return out, done


def test_presets_are_listed_with_claim_and_source(capsys):
    assert main(["presets"]) == 0
    out = capsys.readouterr().out
    for preset in PRESETS.values():
        assert preset.name in out
        assert preset.claim in out
        assert preset.source in out


def test_a_listed_preset_is_a_spec_file(capsys, tmp_path):
    assert main(["presets", "--json"]) == 0
    for name, spec in json.loads(capsys.readouterr().out).items():
        assert canonical_json(PRESETS[name].spec) == json.dumps(spec, sort_keys=True, separators=(",", ":"))


def test_json_prints_one_event_a_line_and_out_holds_the_result(finished):
    out, done = finished
    assert done.returncode == 0, done.stderr
    events = [parse_event(line) for line in done.stdout.splitlines()]
    assert events[0].kind == "estimated"
    ended = events[-1]
    assert isinstance(ended, Ended)
    result = written(out)
    assert result == ended.result
    assert result.spec.widths == (10, 20)
    rows = list(csv.DictReader((out / "points.csv").read_text().splitlines()))
    assert [(row["width"], row["outcome"]) for row in rows] == [("10", "over-budget"), ("20", "over-budget")]
    assert [float(row["sup_kernel_change"]) for row in rows] == [
        run.sup_change for point in result.points for run in point.runs
    ]


def test_progress_events_hold_no_points(finished):
    events = [parse_event(line) for line in finished[1].stdout.splitlines()]
    progress = [event for event in events if event.kind == "point_progress"]
    assert progress
    assert all(event.point is None for event in progress)


def test_a_second_run_computes_nothing_again(finished, capsys):
    out, _ = finished
    before = written(out)
    assert main(["run", "liu-fig1-left", *TINY, "--out", str(out), "--json"]) == 0
    events = [parse_event(line) for line in capsys.readouterr().out.splitlines()]
    assert [event.resumed for event in events if event.kind == "point_finished"] == [True, True]
    after = written(out)
    assert after.points == before.points


def test_show_prints_the_table_and_the_origin(finished, capsys):
    assert main(["show", str(finished[0])]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 points" in out
    assert "jax " in out
    assert "! 1 over-budget" in out
    assert "linear output: ΔK: no exponent in m fitted" in out


def test_no_json_prints_table_and_sends_progress_to_stderr(finished, capsys):
    out, _ = finished
    assert main(["run", "liu-fig1-left", *TINY, "--out", str(out), "--no-json"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split()[:2] == ["width", "m"]
    assert "width=20 resumed, 100%" in printed.err
    assert "\r" not in printed.err  # not a terminal


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_leaves_a_run_that_resumes(tmp_path):
    spec, out = tmp_path / "spec.json", tmp_path / "out"
    spec.write_text(canonical_json(SLOW))
    with subprocess.Popen(
        command("run", spec, "--out", out, "--no-json"), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        wait_until_kept(SLOW, process)
        process.send_signal(signal.SIGINT)
        printed, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in complaints
    assert b"The same command resumes the run" in complaints
    assert b"\n3 " in printed
    cancelled = written(out)
    assert (cancelled.status, [point.width for point in cancelled.points]) == ("cancelled", [3])

    with subprocess.Popen(command("run", spec, "--out", out, "--json"), cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        finished = next(event for event in map(parse_event, process.stdout) if event.kind == "point_finished")
        process.kill()
    assert finished.resumed
    assert finished.point == cancelled.points[0]


def test_a_reader_that_leaves_early_gets_no_traceback(finished):
    out, _ = finished
    shell = subprocess.run(
        f"{sys.executable} -m ntk_core run liu-fig1-left {' '.join(TINY)} --out {out} --json | head -c 20",
        shell=True, cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    assert shell.stdout == b'{"kind":"estimated",'
    assert shell.stderr == b""


def test_a_run_that_cannot_save_its_points_fails(tmp_path, capsys):
    (tmp_path / "points.csv").mkdir()  # in the way
    assert main(["run", "liu-fig1-left", *TINY, "--out", str(tmp_path), "--json"]) == 1
    assert capsys.readouterr().err.startswith("--out: ")


@pytest.mark.parametrize(
    ("setting", "field", "allowed"),
    [
        ("widths=1000000000", "widths", "from 1 to 10,000,000"),
        ("num_seeds=1e999", "num_seeds", "an integer from 1 to 100"),
        ("dataset=3", "dataset", "settings"),
        ("a.b.c=3", "a.b.c", "training.learning_rate"),
        ("widths", "--set", "NAME=VALUE"),
        ("=3", "--set", "NAME=VALUE"),
        ("outputs=\x1b[31mred", "outputs", "linear"),
        ("widths=" + "[" * 9000, "widths", "an integer"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(capsys, setting, field, allowed):
    (line,) = fails(capsys, "run", "liu-fig1-left", "--set", setting)
    assert line.startswith(f"{field}: ")
    assert allowed in line


def test_every_problem_has_its_own_sentence(capsys):
    lines = fails(capsys, "run", "liu-fig1-left", "--set", "widths=0", "num_seeds=0", "--set", "training.max_steps=x")
    assert sorted(line.partition(":")[0] for line in lines) == ["num_seeds", "training.max_steps", "widths"]


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 20, b"[" * 100_000, b'{"widths": [0]}'])
def test_a_broken_spec_file_is_refused(capsys, tmp_path, content):
    path = tmp_path / "spec.json"
    path.write_bytes(content)
    assert len(fails(capsys, "run", path)) == 1


def test_targets_that_are_no_spec_are_refused(capsys, tmp_path):
    (line,) = fails(capsys, "run", "no-such-preset")
    assert "liu-fig1-left" in line
    (line,) = fails(capsys, "run", tmp_path / "missing.json")
    assert "No such file" in line
    (line,) = fails(capsys, "run", tmp_path)
    assert "ordinary file" in line
    (line,) = fails(capsys, "run", "/dev/zero")
    assert "ordinary file" in line
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(10 * 2**30)
    (line,) = fails(capsys, "run", huge)
    assert "1,000,000 bytes" in line
    assert len(fails(capsys, "run", "a\0b.json")) == 1
    assert len(fails(capsys, "run", "x" * 5000 + ".json")) == 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of POSIX")
def test_a_pipe_without_a_writer_does_not_hang(capsys, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert len(fails(capsys, "run", tmp_path / "pipe")) == 1


@pytest.mark.parametrize("place", ["/dev/null/out", "/proc/out", "a\0b"])
def test_a_directory_that_cannot_be_written_is_refused(capsys, place):
    (line,) = fails(capsys, "run", "liu-fig1-left", *TINY, "--out", place)
    assert line.startswith("--out: ")


@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff", b'{"status": "completed"}'])
def test_a_damaged_result_is_refused_by_show(capsys, tmp_path, damage):
    (tmp_path / "run.jsonl").write_bytes(damage)
    (line,) = fails(capsys, "show", tmp_path)
    assert line.startswith("DIR_OR_DIGEST: ")


@pytest.mark.parametrize("place", ["/nowhere/at/all", "/dev/null", "a\0b", "", "n" * 300])
def test_show_needs_a_directory_of_a_run(capsys, place):
    assert len(fails(capsys, "show", place)) == 1


@pytest.mark.parametrize(
    ("setting", "suggestion"),
    [
        ("widht=3", "widths"),
        ("num_samples=3", "dataset.num_samples"),
        ("trainig.max_steps=3", "training.max_steps"),
        ("training.rate=3", "training.learning_rate"),
    ],
)
def test_misspelled_settings_get_a_suggestion(capsys, setting, suggestion):
    name = setting.partition("=")[0]
    assert fails(capsys, "run", "liu-fig1-left", "--set", setting) == [
        f"{name}: no such setting; did you mean {suggestion}?"
    ]


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [(["rnu"], '"run"'), (["list", "--limt", "3"], "--limit"), (["own", "--witdhs"], "--widths")],
)
def test_misspelled_commands_and_options_get_a_suggestion(capsys, arguments, suggestion):
    (line,) = fails(capsys, *arguments)
    assert f"Did you mean {suggestion}?; see linearity-lab --help" in line


def test_version_and_help_name_the_program_without_starting_jax():
    code = (
        "import sys; from ntk_core.cli import main; sys.argv[0] = '/bin/linearity-lab'; main(['--version'])\n"
        "assert not {'jax', 'numpy', 'ntk_core.runs'} & sys.modules.keys()\n"
        "main(['--help']); assert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    version, usage, *_ = done.stdout.splitlines()
    assert (version, usage) == (__version__, "Usage: linearity-lab COMMAND")
    assert all(f" {name} " in done.stdout for name in COMMANDS)
    called = subprocess.run(command("run", "--help"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert called.startswith("Usage: python -m ntk_core run [OPTIONS] PRESET_OR_SPEC.JSON")


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["run"], ["run", "liu-fig1-left", "--nonsense"], ["show"], ["run", "liu-fig1-left", "--set"]],
)
def test_a_command_that_does_not_exist_is_one_sentence(capsys, arguments):
    (line,) = fails(capsys, *arguments)
    assert "--help" in line


def test_paper_sizes_belong_to_presets(capsys, tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(canonical_json(SLOW))
    (line,) = fails(capsys, "run", path, "--paper")
    assert "only with a preset" in line


def test_a_run_that_does_not_fit_is_refused_with_what_fits(capsys):
    (line,) = fails(capsys, "run", "liu-fig1-left", "--set", "widths=10000000", "dataset.num_samples=10000")
    assert "GiB" in line
