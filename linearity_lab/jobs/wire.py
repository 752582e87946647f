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
MAX_BYTES, MAX_BLOBS = 2**28, 2**15
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
        ValueError: it has more than MAX_BYTES or MAX_BLOBS, or is nothing that :func:`send` writes.
    """
    try:
        text = _part(pipe, MAX_BYTES)
        (count,) = struct.unpack(">I", _part(pipe, 4))
        blobs, left = list[bytes](), MAX_BYTES - len(text)
        for _ in range(count if count <= MAX_BLOBS else 0):
            blobs.append(_part(pipe, left))
            left -= len(blobs[-1])
        return _read(json.loads(text), blobs), MAX_BYTES - left
    except (AttributeError, IndexError, KeyError, MemoryError, RecursionError, TypeError, struct.error) as error:
        raise ValueError("no value of ours") from error


def _part(pipe: IO[bytes], most: int) -> bytes:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (size,) = _LENGTH.unpack(head)
    if size > most:
        raise ValueError("a value is too large")
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
