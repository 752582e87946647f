"""Read settings and points that were stored earlier.

document → migrated → parsed → a typed outcome.

A document is the JSON of a spec or a point as some version of the lab wrote it.
``schema_version`` states the version of its experiment. Migrations, written beside the spec, lead
from one version to the next.
"""

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from linearity_lab.runs._spec import SCHEMA_VERSION, ExperimentSpec, Spec, version_of
from linearity_lab.runs._table import KINDS
from linearity_lab.runs._values import PointValue
from linearity_lab.settings.grammar import InvalidSpec, validated
from linearity_lab.settings.part import SpecPart, reduced
from ntk_core.errors import InvalidInput

Document = Mapping[str, Any]


class Reading(StrEnum):
    """Outcome of reading stored settings.

    Settings of an unknown experiment, or with an unknown setting, are of an earlier or a later
    version: nothing in them tells which.
    """

    READABLE = "readable"
    OLDER = "older"
    NEWER = "newer"
    OTHER_VERSION = "other version"
    DAMAGED = "damaged"


@dataclass(frozen=True)
class Readable:
    """Settings that this version understands."""

    spec: Spec


@dataclass(frozen=True)
class OtherVersion:
    """Intact settings of an experiment, setting or version that this version does not have.

    Attributes:
        document: the settings as stored.
        reading: older, newer, or another version.
        reason: one clause for the user.
    """

    document: Document
    reading: Reading
    reason: str


@dataclass(frozen=True)
class Damaged:
    """A text that is not what was stored."""


Settings = Readable | OtherVersion | Damaged


def read_settings(text: str) -> Settings:
    """Return the outcome of reading an intact text of settings."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return Damaged()
    if not isinstance(document, dict):
        return Damaged()
    name = document.get("experiment")
    if not isinstance(name, str) or name not in KINDS:
        reason = f"this version has no experiment {str(name)[:40]!r}"
        return OtherVersion(document, Reading.OTHER_VERSION, reason)
    kind = KINDS[name].spec
    version = document.get("schema_version")
    reading = Reading.OTHER_VERSION
    if isinstance(version, int) and version != version_of(kind):
        reading = Reading.NEWER if version > version_of(kind) else Reading.OLDER
    try:
        return Readable(validated(kind, migrated(kind, document)))
    except InvalidSpec as error:
        return OtherVersion(document, reading, str(error.problems[0]))


def migrated(kind: type[ExperimentSpec], document: Document) -> dict[str, Any]:
    """Return settings in the form of this version; a document without a version is current.

    Raises:
        InvalidSpec: if a newer version wrote it, or no migration leads from its
            version to this one.
    """
    version = document.get("schema_version", version_of(kind))
    migrations = _migrations(kind, version)
    found = dict(document)
    for migration in migrations:
        found = dict(migration.settings(found))
    if migrations:
        found["schema_version"] = version_of(kind)
    return found


def read_point(experiment: str, version: int, text: str) -> PointValue | None:
    """Return an intact stored point; None if this version cannot read it.

    Args:
        version: of its experiment.
    """
    if experiment not in KINDS:
        return None
    try:
        return parsed_point(experiment, version, json.loads(text))
    except (ValueError, RecursionError, InvalidSpec):
        return None


def parsed_point(experiment: str, version: int, document: object) -> PointValue:
    """Return a migrated and validated point.

    Raises:
        ValueError: if it is not a point of this experiment.
        InvalidSpec: if no migration leads from its version to this one.
    """
    if not isinstance(document, dict):
        raise ValueError("a point is a JSON object")
    return KINDS[experiment].point.model_validate(migrated_point(experiment, version, document))


def migrated_point(experiment: str, version: object, document: Any) -> Any:
    """Return the document of a point in the form of this version; anything but an object as it is.

    Raises:
        InvalidSpec: if a newer version wrote it, or no migration leads from its
            version to this one.
    """
    migrations = _migrations(KINDS[experiment].spec, version)
    if not isinstance(document, dict):
        return document
    found = dict(document)
    for migration in migrations:
        found = dict(migration.point(found))
    return found


def _migrations(kind: type[ExperimentSpec], version: object) -> list[Any]:
    current = version_of(kind)
    if isinstance(version, bool) or not isinstance(version, int) or version > current:
        allowed = f"at most {current}; a newer version of the lab wrote it"
        raise InvalidSpec((InvalidInput("schema_version", version, allowed),))
    steps = range(version, current)
    if version < SCHEMA_VERSION or any(step not in kind.migrations for step in steps):
        allowed = f"{current}, or a version with a migration to it"
        raise InvalidSpec((InvalidInput("schema_version", version, allowed),))
    return [kind.migrations[step] for step in steps]


def digest_json(spec: Spec) -> str:
    """Return canonical JSON without settings at their defaults: the text whose SHA-256 names a run.

    A new setting with a default does not change it. Names of kinds and versions remain, so that
    different settings have different texts.
    """
    return json.dumps(reduced(spec), sort_keys=True, separators=(",", ":"))


@functools.lru_cache(maxsize=256)
def naming(kind: type[ExperimentSpec]) -> str:
    """Return a fingerprint of an experiment's settings: their names, defaults and version.

    Stored digests of another fingerprint may differ from those of this version.
    """
    facts: list[str] = [f"version {version_of(kind)}"]
    waiting: list[type[BaseModel]] = [kind]
    seen: set[type[BaseModel]] = set()
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        if issubclass(part, SpecPart):
            facts.append(f"{part.__qualname__}: {part.selector} {part.relevant!r}")
        for name, field in part.model_fields.items():
            default = field.get_default(call_default_factory=True)
            facts.append(f"{part.__qualname__}.{name} = {default!r}")
            waiting += _parts_in(field.annotation)
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _parts_in(annotation: object) -> list[type[BaseModel]]:
    """Return the groups of settings, and the parts of graphs, that occur in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    found: list[type[BaseModel]] = []
    for inner in getattr(annotation, "__args__", ()):
        found += _parts_in(inner)
    return found
