"""Run the examples on the library's pages (docs/api).

Each page runs in its own namespace; this is part of ``make docs``.
"""

import os
import runpy
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

sys.path.insert(0, str(ROOT))

from tests.documents import program  # noqa: E402

if __name__ == "__main__":
    # Compilation takes most of the time.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        for page in sorted((ROOT / "docs" / "api").glob("*.md")):
            if found := program(page):
                (file := Path(folder) / f"{page.stem}_page.py").write_text(found, encoding="utf-8")
                started = time.monotonic()
                runpy.run_path(str(file), run_name="__main__")
                print(
                    f"{page.name}: its example runs, {time.monotonic() - started:.0f} s", flush=True
                )
