"""Bill of materials of the image from its lock: every package with version and file hashes.

python .ci/sbom.py [cpu | cuda12 | cuda13] > sbom.json        CycloneDX 1.5, as scanners read it
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==([^\s;\\]+)")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> list[dict[str, object]]:
    """Return one component per locked package, or per version if Python versions differ."""
    found: list[dict[str, object]] = []
    hashes: list[dict[str, str]] = []
    for line in lock.splitlines():
        if package := _PACKAGE.match(line):
            name, version = package.groups()
            hashes = []
            purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
            found.append(
                {
                    "type": "library",
                    "name": name,
                    "version": version,
                    "purl": purl,
                    "hashes": hashes,
                }
            )
        hashes += [{"alg": "SHA-256", "content": digest} for digest in _HASH.findall(line)]
    return found


def bill(lock: str, version: str) -> dict[str, object]:
    """Return the bill of materials as JSON data."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "linearity-lab", "version": version}
        },
        "components": components(lock),
    }


def main() -> None:
    accelerator = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    found = re.search(
        r'__version__ = "([^"]+)"', (ROOT / "ntk_core" / "_version.py").read_text(encoding="utf-8")
    )
    assert found is not None
    lock = (ROOT / "locks" / f"{accelerator}.txt").read_text(encoding="utf-8")
    print(json.dumps(bill(lock, found[1]), indent=1))


if __name__ == "__main__":
    main()
