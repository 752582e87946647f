"""Check every link and picture of a built site, raw HTML included; part of ``make docs``."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """Targets and anchors of one page."""

    def __init__(self, page: Path) -> None:
        """Parse the page."""
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, _tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Collect targets and anchors of one element."""
        for name, value in attributes:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.targets.add(value)
            elif value and name == "srcset":
                self.targets.update(each.split()[0] for each in value.split(","))


def broken(site: Path) -> list[str]:
    """Return the links and pictures whose file or anchor does not exist."""
    pages = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    found = []
    for page, links in sorted(pages.items()):
        for target in sorted(links.targets):
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            file = file / "index.html" if file.is_dir() else file
            anchors = pages[file].anchors if file in pages else None
            if not file.exists() or (
                parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors
            ):
                found.append(f"{page.relative_to(site.resolve())}: {target}")
    return found


if __name__ == "__main__":
    missing = broken(Path(sys.argv[1]))
    print("\n".join(missing) or "Every link and picture of the site exists.")
    sys.exit(bool(missing))
