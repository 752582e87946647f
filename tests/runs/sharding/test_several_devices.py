"""A network on four devices: equal to one on one device, with a quarter on each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.memory import memory_limit
from linearity_lab.runs import _estimate
from ntk_core.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]  # one process compiles for all of them


@pytest.fixture(scope="module")
def measured():
    """Measurements from another process, since the number of devices is fixed when JAX starts."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith("LINEARITY_LAB_")
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.runs.sharding.four_devices"],
        cwd=ROOT,
        env={**environment, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout.splitlines()[-1])


@pytest.mark.long
def test_four_devices_give_the_numbers_of_one(measured):
    assert len(measured["differences"]) == 10
    assert max(measured["differences"].values()) < 1e-10, measured  # float64: sums in another order


def test_each_device_holds_a_quarter(measured):
    assert measured["shares"] == dict.fromkeys(("params", "inputs", "cotangents", "trained"), 0.25)
    # Weights are most of it; inputs and targets are on every device.
    assert measured["bytes"] < 0.35


def test_a_sweep_is_divided_by_the_environment(measured):
    divided, whole = measured["run"]["shares"]
    assert divided == [0.25]
    assert 1.0 in whole
    # float32 data; not 0, since the order of sums differs.
    assert 0 < measured["run"]["difference"] < 1e-5


@pytest.mark.parametrize(
    ("usable", "width", "devices"),
    [
        ([], 100, 1),
        ([80e9] * 4, 100, 1),
        ([1.0] * 4, 100, 4),
        ([1.0] * 3, 100, 2),
        ([1.0] * 4, 101, 1),
    ],
)
def test_point_too_large_for_one_device_takes_all(monkeypatch, usable, width, devices):
    monkeypatch.setattr(_estimate, "accelerator_bytes", lambda: usable)
    monkeypatch.delenv("LINEARITY_LAB_DEVICES", raising=False)
    assert _estimate.devices_for(KernelChangeSpec(), f"width={width}") == devices


def test_memory_is_that_of_all_accelerators_together(monkeypatch):
    monkeypatch.delenv("LINEARITY_LAB_MEMORY_GIB", raising=False)
    monkeypatch.setattr("linearity_lab.memory.accelerator_bytes", lambda: [80e9] * 4)
    assert memory_limit() == 320e9
    monkeypatch.setenv("LINEARITY_LAB_MEMORY_GIB", "1")
    assert memory_limit() == 2**30


@pytest.mark.parametrize("given", ["two", "1000"])
def test_a_number_of_devices_that_cannot_be_had_is_named(monkeypatch, given):
    monkeypatch.setenv("LINEARITY_LAB_DEVICES", given)
    with pytest.raises(InvalidInput, match="LINEARITY_LAB_DEVICES"):
        _estimate.devices_for(KernelChangeSpec(), "width=100")
