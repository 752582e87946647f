"""Files of a tutorial, to add, build and install as its readers do."""

import os
import re
import subprocess
import sys
from pathlib import Path

TUTORIALS = Path(__file__).resolve().parent.parent / "docs" / "tutorials"


def files_of(tutorial: str) -> dict[str, str]:
    """Path → text of every block of code whose caption is a path."""
    text = (TUTORIALS / tutorial).read_text(encoding="utf-8")
    found = re.findall(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert found, tutorial
    return dict(found)


def write_files(tutorial: str, folder: Path) -> None:
    """Write the files of a tutorial below a folder."""
    for name, text in files_of(tutorial).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def build_and_install(source: Path, target: Path) -> None:
    """Build the distribution in ``source`` and install it below ``target``, without a network."""
    uv = str(Path(sys.executable).with_name("uv"))
    install = [uv, "pip", "install", "--no-deps", "--python", sys.executable, "--target", str(target)]
    for command in ([uv, "build", "--wheel", "--out-dir", str(source / "dist"), str(source)], install):
        wheels = map(str, source.glob("dist/*.whl")) if command is install else ()
        done = subprocess.run(
            [*command, *wheels], env={**os.environ, "UV_OFFLINE": "1"}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
