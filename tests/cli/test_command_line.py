"""The command line: output, exit codes, errors."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab import cli, installation
from linearity_lab.cli import _lab, main
from linearity_lab.cli._main import COMMANDS
from linearity_lab.cli._targets import spec_named
from linearity_lab.experiments.kernel_change.point import KernelChangeResult
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import PRESETS, canonical_json
from linearity_lab.runs.events import parse_event
from linearity_lab.runs.store import read_line
from linearity_lab.settings.training import TrainingSpec
from ntk_core import __version__, machine
from tests.compiler_flags import QUICK_ENVIRONMENT

ROOT = Path(__file__).resolve().parents[2]
TINY = [
    "--set",
    "widths=10,20",
    "num_seeds=1",
    "outputs=linear",
    "training.max_steps=50",
    "training.num_records=4",
]
SLOW = KernelChangeSpec(
    widths=(3, 3000),  # a quick point, then one of half a minute
    outputs=("linear",),
    num_seeds=1,
    training=TrainingSpec(
        max_steps=30_000, num_records=200, loss_threshold=1e-9, learning_rate=1e-6
    ),
)


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "linearity_lab", *map(str, arguments)]


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


def test_presets_are_listed_with_claim_source_and_spec(capsys):
    assert main(["presets"]) == 0
    out = capsys.readouterr().out
    assert main(["presets", "--json"]) == 0
    specs = json.loads(capsys.readouterr().out)
    for name, preset in PRESETS.items():
        assert all(part in out for part in (name, preset.claim, preset.source))
        assert canonical_json(preset.spec) == json.dumps(
            specs[name], sort_keys=True, separators=(",", ":")
        )


@pytest.mark.slow
def test_json_prints_one_event_a_line_and_out_holds_the_result(finished):
    out, done = finished
    assert done.returncode == 0, done.stderr
    events = [parse_event(line) for line in done.stdout.splitlines()]
    assert events[0].kind == "estimated"
    assert {event.point for event in events if event.kind == "point_progress"} == {None}
    result = written(out)
    assert result == events[-1].result
    assert result.spec.widths == (10, 20)
    rows = list(csv.DictReader((out / "points.csv").read_text().splitlines()))
    assert [(row["width"], row["outcome"]) for row in rows] == [
        ("10", "over-budget"),
        ("20", "over-budget"),
    ]
    runs = [run for point in result.points for run in point.runs]
    assert [float(row["sup_kernel_change"]) for row in rows] == [run.sup_change for run in runs]


def test_finished_run_is_shown_and_resumed_from_its_directory(finished, capsys):
    out, before = finished[0], written(finished[0])
    assert main(["show", str(out)]) == 0
    shown = capsys.readouterr().out
    for part in (
        "2 of 2 points",
        "jax ",
        "! 1 over-budget",
        "linear output: ΔK: no exponent in m fitted",
    ):
        assert part in shown
    assert main(["run", "liu-fig1-left", *TINY, "--out", str(out), "--no-json"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].split()[:2] == ["width", "m"]
    assert "width=20 resumed, 100%" in printed.err
    assert "\r" not in printed.err  # not a terminal
    assert written(out).points == before.points, "nothing is computed again"


def test_a_reader_that_leaves_early_gets_no_traceback(finished):
    out, _ = finished
    shell = subprocess.run(
        f"{sys.executable} -m linearity_lab run liu-fig1-left {' '.join(TINY)} --out {out} --json "
        "| head -c 20",
        shell=True,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert shell.stdout == b'{"kind":"estimated",'
    assert shell.stderr == b""


def test_a_run_that_cannot_save_its_points_fails(tmp_path, capsys):
    for place in ("/dev/null/out", "/proc/out", "a\0b"):
        (line,) = fails(capsys, "run", "liu-fig1-left", *TINY, "--out", place)
        assert line.startswith("--out: ")
    (tmp_path / "points.csv").mkdir()  # in the way
    assert main(["run", "liu-fig1-left", *TINY, "--out", str(tmp_path), "--json"]) == 1
    assert capsys.readouterr().err.startswith("--out: ")


@pytest.mark.parametrize(
    ("setting", "field", "allowed"),
    [
        ("widths=1000000000", "widths", "from 1 to 10,000,000"),
        ("a.b.c=3", "a.b.c", "dataset.name"),
        ("training.learnin_rate=3", "training.learnin_rate", "training.learning_rate"),
        ("widths", "--set", "NAME=VALUE"),
        ("outputs=\x1b[31mred", "outputs", "linear"),
        ("widths=" + "[" * 9000, "widths", "an integer"),
        ("widths=10000000 dataset.num_samples=10000", "widths", "GiB"),
    ],
)
def test_a_bad_setting_is_named_with_what_is_allowed(capsys, setting, field, allowed):
    (line,) = fails(capsys, "run", "liu-fig1-left", "--set", *setting.split())
    assert line.startswith(f"{field}: ")
    assert allowed in line


def test_every_problem_has_its_own_sentence(capsys):
    lines = fails(
        capsys,
        "run",
        "liu-fig1-left",
        "--set",
        "widths=0",
        "num_seeds=0",
        "--set",
        "training.max_steps=x",
    )
    assert sorted(line.partition(":")[0] for line in lines) == [
        "num_seeds",
        "training.max_steps",
        "widths",
    ]


def test_targets_that_are_no_spec_are_refused(capsys, tmp_path):
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(10 * 2**30)
    (tmp_path / "spec.json").write_text(canonical_json(SLOW))
    for name, content in {
        "empty": b"",
        "noise": bytes(range(256)) * 20,
        "deep": b"[" * 100_000,
    }.items():
        (tmp_path / f"{name}.json").write_bytes(content)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # without a writer
    for arguments, words in {
        ("no-such-preset",): "presets` lists all presets",
        (tmp_path / "missing.json",): "No such file",
        (tmp_path,): "ordinary file",
        ("/dev/zero",): "ordinary file",
        (tmp_path / "pipe",): "",
        (tmp_path / "huge.json",): "1,000,000 bytes",
        ("a\0b.json",): "",
        ("x" * 5000 + ".json",): "",
        (tmp_path / "empty.json",): "JSON",
        (tmp_path / "noise.json",): "JSON",
        (tmp_path / "deep.json",): "JSON",
        (tmp_path / "spec.json", "--paper"): "only with a preset",
    }.items():
        (line,) = fails(capsys, "run", *arguments)
        assert words in line


@pytest.mark.parametrize("place", ["/nowhere/at/all", "/dev/null", "a\0b", "", "n" * 300])
def test_show_needs_a_directory_of_a_run(capsys, place):
    assert len(fails(capsys, "show", place)) == 1


def test_a_damaged_result_is_refused_by_show(capsys, tmp_path):
    for damage in (b"", b"{}", b"\xff", b'{"status": "completed"}'):
        (tmp_path / "run.jsonl").write_bytes(damage)
        (line,) = fails(capsys, "show", tmp_path)
        assert line.startswith("DIR_OR_DIGEST: ")


def test_misspelled_settings_get_a_suggestion(capsys):
    for name, suggestion in {"widht": "widths", "num_samples": "dataset.num_samples"}.items():
        (line,) = fails(capsys, "run", "liu-fig1-left", "--set", f"{name}=3")
        assert line == f"{name}: no such setting; did you mean {suggestion}?"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rnu"], 'Did you mean "run"?; see linearity-lab --help'),
        (["list", "--limt", "3"], "Did you mean --limit?; see linearity-lab --help"),
        ([], "--help"),
        (["run"], "--help"),
        (["run", "liu-fig1-left", "--nonsense"], "--help"),
        (["run", "liu-fig1-left", "--set"], "--help"),
    ],
)
def test_a_command_that_does_not_exist_is_one_sentence(capsys, arguments, words):
    (line,) = fails(capsys, *arguments)
    assert words in line


@pytest.mark.slow
def test_version_and_help_name_the_program_without_starting_jax():
    code = (
        "import sys; from linearity_lab.cli import main; sys.argv[0] = '/bin/linearity-lab'; "
        "main(['--version'])\n"
        "assert not {'jax', 'numpy', 'linearity_lab.runs'} & sys.modules.keys()\n"
        "main(['--help']); assert 'jax' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    version, usage, *_ = done.stdout.splitlines()
    assert (version, usage) == (__version__, "Usage: linearity-lab COMMAND")
    assert all(f" {name} " in done.stdout for name in COMMANDS)
    called = subprocess.run(
        command("run", "--help"), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert called.startswith("Usage: python -m linearity_lab run [OPTIONS] PRESET_OR_SPEC.JSON")


def test_app_becomes_streamlit_on_this_checkout(monkeypatch):
    became = []
    monkeypatch.setattr(os, "execv", lambda program, command: became.append((program, command)))
    main(["app", "--port", "9", "--host", "0.0.0.0", "--", "--server.headless=true"])
    ((program, command),) = became
    assert program == sys.executable
    assert command[1:6] == ["-P", "-m", "streamlit", "run", str(ROOT / "app.py")]
    assert command[6:] == ["--server.port=9", "--server.address=0.0.0.0", "--server.headless=true"]
    assert installation.TOP == ROOT


def test_app_without_its_extra_names_the_command_to_install_it(monkeypatch, capsys):
    monkeypatch.setattr(
        _lab.importlib.util,
        "find_spec",
        lambda name: None if name in ("streamlit", "segno") else name,
    )
    assert main(["app"]) == 1
    (printed,) = capsys.readouterr().err.splitlines()
    assert "missing: streamlit, segno" in printed
    assert printed.endswith(": pip install -r requirements.txt")


@pytest.mark.parametrize("extra", ["cli", "app", "cluster", "postgres", "torch"])
def test_install_advice_names_a_file_or_the_wheel(monkeypatch, extra):
    assert (ROOT / machine.how_to_install(extra).split()[-1]).is_file()
    monkeypatch.setattr(machine, "IS_CHECKOUT", False)
    # These tests run in an installation of this folder.
    assert machine.how_to_install(extra) == f"pip install '{ROOT}[{extra}]'"
    monkeypatch.setattr(machine.importlib.metadata, "distribution", _not_installed)
    assert machine.how_to_install(extra) == f"pip install 'linearity-lab[{extra}]'"


def _not_installed(name):
    raise machine.importlib.metadata.PackageNotFoundError(name)


def test_version_needs_no_other_package(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["linearity-lab", "--version"])
    monkeypatch.setattr(machine.importlib.util, "find_spec", lambda name: None)
    assert cli.program() == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_an_experiment_runs_by_its_name_with_settings(capsys):
    spec = spec_named("kernel_change", paper=False)
    assert spec == KernelChangeSpec()
    assert main(["run", "kernel_change", "--set", "wdths=30"]) == 2
    assert "did you mean widths?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "near"), [("liu-fig1-lef", "liu-fig1-left"), ("kernel_chang", "kernel_change")]
)
def test_unknown_names_give_the_nearest_ones_alone(given, near, capsys):
    assert main(["run", given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert near in line
    assert len(line) < 200


@pytest.mark.slow  # starts the program
def test_listings_end_well_when_the_reader_closes_the_pipe():
    process = subprocess.Popen(
        [sys.executable, "-m", "linearity_lab", "presets"], cwd=ROOT, stdout=subprocess.PIPE
    )
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == 0
