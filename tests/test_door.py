"""The door of the core: light to import, and everything behind it resolves; describing work does not start JAX."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ntk_core
from ntk_core.experiments import EXPERIMENTS

ROOT = Path(__file__).resolve().parent.parent
HEAVY = ("jax", "numpy", "scipy", "optax", "pydantic", "pandas", "sqlalchemy")
DESCRIBING = ("spec", "result", "costs", "summary", "presets")


def printed(code: str) -> str:
    """What a fresh Python prints."""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def describing_modules() -> list[str]:
    """What describes work, stores it and shows it: single modules, and all of an experiment but its computation."""
    alone = sorted(path.stem for path in (ROOT / "ntk_core").glob("*.py") if not path.stem.startswith("__"))
    folders = [f"experiments.{name}" for name in EXPERIMENTS]
    parts = [
        f"{folder}.{part}"
        for folder in folders
        for part in DESCRIBING
        if (ROOT / "ntk_core" / folder.replace(".", "/") / f"{part}.py").exists()
    ]
    assert len(parts) >= 4 * len(folders)
    return [f"ntk_core.{name}" for name in ("runs", *alone, *folders, *parts)]


def test_importing_the_core_loads_nothing_heavy() -> None:
    assert printed(f"import sys, ntk_core; print(*(set({HEAVY}) & set(sys.modules)))") == ""


def test_importing_the_core_takes_no_longer_than_a_few_starts_of_python() -> None:
    """In processor time of the same process, since other programs may be busy; it is about once the start."""
    code = """if True:
        import time
        start = time.process_time()
        import ntk_core
        print((time.process_time() - start) / start)
    """
    assert min(float(printed(code)) for _ in range(3)) < 5


def test_describing_work_does_not_start_jax() -> None:
    code = f"""if True:
        import importlib, sys
        for name in {describing_modules()}:
            importlib.import_module(name)
            if "jax" in sys.modules:
                print(name)
                break
    """
    assert printed(code) == ""


def test_every_name_of_the_door_resolves_and_no_other() -> None:
    names = dir(ntk_core)
    assert len(names) > 50
    assert [name for name in names if not hasattr(ntk_core, name)] == []
    assert not hasattr(ntk_core, "nothing")
