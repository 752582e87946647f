"""Ctrl-C and SIGTERM at any stage leave a resumable run."""

import os
import signal
import subprocess
import sys
import time

import pytest

from linearity_lab.runs import canonical_json, spec_digest
from linearity_lab.runs.store import Store, read_line
from tests.cli.test_command_line import ROOT, SLOW, command

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")]
# Minutes of work in C that ignores signals, as compilation does.
DEAF = (
    "import hashlib, sys\n"
    "from linearity_lab.cli import _following as i\n"
    "i.GRACE_S = dict.fromkeys(i.GRACE_S, float(sys.argv[1]))\n"
    "with i.interruptible('It can be resumed.') as asked:\n"
    "    print('ready', flush=True)\n"
    "    hashlib.pbkdf2_hmac('sha256', b'x', b'y', 2**31 - 1)\n"
)


def started(line: str, *arguments: object, script: str = "", env=None) -> subprocess.Popen[str]:
    """Start a process and wait until it prints a line with this text."""
    called = [sys.executable, "-c", script, *map(str, arguments)] if script else command(*arguments)
    process = subprocess.Popen(
        called,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    assert process.stdout is not None
    while line not in (read := process.stdout.readline()):
        assert read, process.communicate()[1]
    return process


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, complaints = process.communicate(timeout=60)
    assert "Traceback" not in complaints
    return process.returncode, complaints


def test_work_that_hears_nothing_is_ended_after_the_grace():
    process = started("ready", 0.2, script=DEAF)
    process.send_signal(signal.SIGTERM)
    returned, complaints = ended(process)
    assert returned == 143
    assert complaints.splitlines()[-1] == "It can be resumed."


def test_the_second_signal_ends_it_at_once():
    process = started("ready", 1000, script=DEAF)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert ended(process) == (
        130,
        "\nStopping after this step; Ctrl-C again stops immediately.\nIt can be resumed.\n",
    )


@pytest.mark.long
def test_signals_keep_points_and_explain_how_to_resume(tmp_path):
    """The signal arrives during compilation of the second point, right after its start event."""
    spec, location, out = tmp_path / "spec.json", str(tmp_path / "lab.sqlite"), tmp_path / "out"
    spec.write_text(canonical_json(SLOW))
    second, environment = '"key":"width=3000","index":1', {"LINEARITY_LAB_STORE": location}
    process = started(second, "run", spec, env=environment)
    process.send_signal(signal.SIGTERM)
    returned, complaints = ended(process)
    assert returned == 143
    assert (
        f"`python -m linearity_lab resume {spec_digest(SLOW)[:12]}` resumes the run." in complaints
    )
    store = Store(location)
    (kept,) = store.points(SLOW).finished().values()
    store.close()

    process = started('"resumed":true', "run", spec, "--out", out, "--json", env=environment)
    process.send_signal(signal.SIGINT)
    returned, complaints = ended(process)
    assert returned == 130
    assert "The same command resumes the run" in complaints
    cancelled = read_line((out / "run.jsonl").read_text())
    assert (cancelled.status, cancelled.points) == ("cancelled", (kept,))
