"""Values between two processes of ours, as JSON and the plain bytes of arrays: nothing that could run as code."""

import dataclasses
import io
import json
import struct
from typing import IO, Any

import numpy as np

from ntk_core.data.uploads import (
    Arrays,
    BadLine,
    Choices,
    Cleaned,
    Column,
    ImageEntry,
    ImageFolders,
    Limits,
    Table,
)
from ntk_core.errors import InvalidInput

_KINDS: dict[str, Any] = {
    each.__name__: each for each in (Arrays, Choices, Cleaned, Column, ImageEntry, ImageFolders, Limits, Table)
}
MAX_BYTES = 2**28
_LENGTH = struct.Struct(">Q")


def send(pipe: IO[bytes], value: object) -> None:
    """Write one value."""
    blobs: list[bytes] = []
    text = json.dumps(_written(value, blobs)).encode()
    for part in (text, struct.pack(">I", len(blobs)), *blobs):
        pipe.write(_LENGTH.pack(len(part)))
        pipe.write(part)
    pipe.flush()


def received(pipe: IO[bytes]) -> tuple[Any, int]:
    """The next value and its bytes.

    Raises:
        EOFError: it does not come whole.
        ValueError: it is larger than MAX_BYTES, or nothing that :func:`send` writes.
    """
    text, count = _part(pipe), _part(pipe)
    blobs = [_part(pipe) for _ in range(struct.unpack(">I", count)[0])]
    try:
        return _read(json.loads(text), blobs), len(text) + sum(map(len, blobs))
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError) as error:
        raise ValueError("no value of ours") from error


def _part(pipe: IO[bytes]) -> bytes:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    if size > MAX_BYTES:
        raise ValueError("a part of a value is too large")
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _written(value: Any, blobs: list[bytes]) -> Any:
    """``value`` as JSON holds it; arrays and bytes go to ``blobs``."""

    def inside(each: Any) -> Any:
        return _written(each, blobs)

    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            blobs.append(value)
            return {"bytes": len(blobs) - 1}
        case np.ndarray():
            stream = io.BytesIO()
            np.save(stream, value, allow_pickle=False)
            blobs.append(stream.getvalue())
            return {"array": len(blobs) - 1}
        case tuple() | list():
            return [inside(each) for each in value]
        case dict():
            return {"dict": [[inside(key), inside(each)] for key, each in value.items()]}
        case InvalidInput():
            return {"refused": [value.field, value.given, value.allowed], "bad line": isinstance(value, BadLine)}
        case MemoryError():
            return {"memory": True}
    fields = {field.name: inside(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return {"kind": type(value).__name__, "fields": fields}


def _read(found: Any, blobs: list[bytes]) -> Any:
    """What :func:`_written` has written."""

    def inside(each: Any) -> Any:
        return _read(each, blobs)

    if isinstance(found, list):
        return tuple(inside(each) for each in found)
    if not isinstance(found, dict):
        return found
    if "bytes" in found:
        return blobs[found["bytes"]]
    if "array" in found:
        return np.load(io.BytesIO(blobs[found["array"]]), allow_pickle=False)
    if "dict" in found:
        return {inside(key): inside(each) for key, each in found["dict"]}
    if "refused" in found:
        return (BadLine if found["bad line"] else InvalidInput)(*found["refused"])
    if "memory" in found:
        return MemoryError()
    return _KINDS[found["kind"]](**{name: inside(each) for name, each in found["fields"].items()})
