"""The wheel's requirements are those of the files that pip and make read: one list each."""

from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

EXTRAS = {
    "app": "requirements.txt",
    "cluster": "requirements-cluster.txt",
    "postgres": "requirements-postgres.txt",
    "torch": "requirements-torch.txt",
}


class RequirementFiles(MetadataHookInterface):
    """The library needs its core; the dashboard, a cluster and a database are extras."""

    def update(self, metadata: dict[str, Any]) -> None:
        """State both."""
        root = Path(self.root)
        metadata["dependencies"] = _stated(root / "requirements-core.txt")
        metadata["optional-dependencies"] = {extra: _stated(root / name) for extra, name in EXTRAS.items()}


def _stated(path: Path) -> list[str]:
    """The requirements of one file, without those of the files that it includes."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]
