"""The command line lists jobs and ends them."""

from __future__ import annotations

import json

from ntk_core.cli import main
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.runs import spec_digest
from ntk_core.runs.store import Store, UnfinishedJob

SPEC = KernelChangeSpec(widths=(3,), num_seeds=1)


def test_the_command_line_lists_and_ends_jobs(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LINEARITY_LAB_STORE", str(tmp_path / "s.sqlite"))
    store = Store()
    store.write_jobs([UnfinishedJob(SPEC, "client", 1.0, running=True, spent_s=12.0, allowed_s=60.0)])
    assert main(["jobs"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split()[:2] == [spec_digest(SPEC)[:16], "running"]
    assert "12 s of 60 s" in line
    assert main(["jobs", "--end", "0" * 8]) == 2
    assert not store.unfinished_jobs()[0].ending
    assert main(["jobs", "--end", spec_digest(SPEC)[:8]]) == 0
    capsys.readouterr()
    assert main(["jobs", "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert (reported["ending"], reported["experiment"]) == (True, "kernel_change")
    store.close()
