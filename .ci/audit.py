"""Known vulnerabilities of the packages in an image.

    python .ci/audit.py [LOCK ...]     by default every lock in locks/

Exit codes: 0 none known, 1 some known, 3 no database reachable, which is reported and fails.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
NONE_KNOWN = 0
KNOWN = 1
NOT_AUDITED = 3
PATIENCE_S = 300


def asked(lock: Path) -> Any:
    """Return the report of pip-audit for a lock, None if it could not run."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        "-r",
        str(lock),
        "--no-deps",
        "--disable-pip",
        "--format=json",
    ]
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        return json.loads(ran.stdout)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None


def verdict(name: str, found: Any) -> int:
    """Print the findings for a lock and return the exit code."""
    packages = found["dependencies"] if found else []
    for package in packages:
        for flaw in package.get("vulns", []):
            fixed = ", ".join(flaw["fix_versions"]) or "no version yet"
            print(f"{name}: {package['name']} {package['version']}: {flaw['id']}, fixed in {fixed}")
    if any(package.get("vulns") for package in packages):
        return KNOWN
    unasked = sum("skip_reason" in package for package in packages)
    if unasked or not packages:
        print(
            f"{name}: NOT AUDITED: no answer about {unasked} of {len(packages)} packages from the "
            "advisory service."
        )
        return NOT_AUDITED
    print(f"{name}: no known vulnerability in {len(packages)} packages.")
    return NONE_KNOWN


def main() -> int:
    """Audit each lock and return the worst exit code; a known vulnerability is the worst."""
    locks = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "locks").glob("*.txt"))
    codes = {verdict(lock.stem, asked(lock)) for lock in locks}
    return KNOWN if KNOWN in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())
