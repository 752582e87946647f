"""Build hooks: the wheel's requirements come from the same files as those of pip and make."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

CLI = "requirements-cli.txt"
EXTRAS = {
    "cli": (CLI,),
    "app": ("requirements.txt", CLI),
    "cluster": ("requirements-cluster.txt",),
    "postgres": ("requirements-postgres.txt", CLI),
    "torch": ("requirements-torch.txt",),
}


TOP = ("app.py", "pages", "gallery", "docs/truth.md", ".streamlit/config.toml")


class TopOfTheCheckout(BuildHookInterface):
    """Put top-level files of a checkout into the wheel's folder linearity_lab.installation.TOP."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Include the files, except in an editable installation, which reads the checkout."""
        if version != "editable":
            build_data["force_include"] |= {
                str(Path(self.root) / name): f"linearity_lab/{name}" for name in TOP
            }


class RequirementFiles(MetadataHookInterface):
    """Requirements: the core for the library.

    Extras for command line, dashboard, cluster and database.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Set dependencies and extras."""
        root = Path(self.root)
        metadata["dependencies"] = _stated(root / "requirements-core.txt")
        metadata["optional-dependencies"] = {
            extra: sorted(line for name in names for line in _stated(root / name))
            for extra, names in EXTRAS.items()
        }


def _stated(path: Path) -> list[str]:
    """Return the requirements of one file, without its included files."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]
