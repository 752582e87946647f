"""Add a setting with a default to one class of settings, then read a store of an earlier version.

``python -m tests.runs.store.added_setting MODULE:CLASS STORE`` prints one JSON object: digest as
given in the store → digest, whether the settings are readable, whether they contain the new
setting, number of points.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import pydantic

NAME = "setting_of_a_later_version"


def add_setting(module: str, name: str) -> None:
    """Let the class ``module:name`` have one more setting from its definition on."""
    kind: Any = type(pydantic.BaseModel)
    original = kind.__new__

    def define(cls: Any, class_name: str, bases: Any, namespace: Any, **options: Any) -> Any:
        if (namespace["__module__"], class_name) == (module, name):
            new = pydantic.Field(
                default=7, description="A setting of a later version.", title="New"
            )
            namespace[NAME] = new
            namespace.setdefault("__annotations__", {})[NAME] = int
        if "options" in namespace:
            # Of ``load_dataset``, whose later version knows the new setting.
            namespace["options"] = _without_new_setting(namespace["options"])
        return original(cls, class_name, bases, namespace, **options)

    kind.__new__ = define


def _without_new_setting(options: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    def known_options(self: Any) -> dict[str, Any]:
        return {name: value for name, value in options(self).items() if name != NAME}

    return known_options


def main(target: str, store: str) -> None:
    module, _, name = target.partition(":")
    add_setting(module, name)
    from linearity_lab.runs import canonical_json, spec_digest
    from linearity_lab.runs.store import Store

    opened = Store(store)
    found = {}
    for entry in opened.runs(limit=1000).runs:
        spec = entry.spec
        found[entry.digest] = {
            "reason": entry.reason,
            "digest": spec_digest(spec) if spec is not None else "",
            "has_setting": spec is not None and f'"{NAME}":7' in canonical_json(spec),
            "num_points": len(opened.points_of(entry.digest)),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
