"""Values between two processes of ours, as JSON, bytes and npy files: nothing that could run as code."""

import dataclasses
import io
import json
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from ntk_core.data.uploads import Arrays, BadLine, Choices, Cleaned, Column, ImageEntry, ImageFolders, Limits, Table
from ntk_core.errors import InvalidInput

_KINDS: dict[str, Any] = {
    each.__name__: each for each in (Arrays, Choices, Cleaned, Column, ImageEntry, ImageFolders, Limits, Table)
}
MAX_BYTES = 2**28
COUNT_DIGITS = 5  # of the number of blobs: a table of 5,000 columns has 10,000
_ERRORS: dict[str, Any] = {each.__name__: each for each in (BadLine, InvalidInput, MemoryError)}


def send(pipe: Connection, value: object) -> None:
    """Write one value: the number of its blobs, its JSON, and the blobs."""
    blobs: list[bytes] = []
    text = json.dumps(value, default=partial(_written, blobs)).encode()
    for part in (str(len(blobs)).encode(), text, *blobs):
        pipe.send_bytes(part)


def received(pipe: Connection, max_bytes: int = MAX_BYTES) -> tuple[Any, int]:
    """The next value, its lists as tuples, and its bytes.

    Raises:
        EOFError, OSError: it does not come whole, or has more than ``max_bytes``.
        ValueError: it is nothing that :func:`send` writes.
    """
    count, left = int(pipe.recv_bytes(COUNT_DIGITS)), max_bytes
    parts: list[bytes] = []
    for _ in range(1 + count):
        parts.append(pipe.recv_bytes(left))
        left -= len(parts[-1])
    try:
        text, *blobs = parts
        return _with_tuples(json.loads(text, object_hook=partial(_read, blobs))), max_bytes - left
    except Exception as error:  # of json, of NumPy, or of a class
        raise ValueError("no value of ours") from error


def _written(blobs: list[bytes], value: Any) -> dict[str, Any]:
    match value:
        case bytes():
            blobs.append(value)
            return {"bytes": len(blobs) - 1}
        case np.ndarray():
            stream = io.BytesIO()
            np.save(stream, value, allow_pickle=False)
            blobs.append(stream.getvalue())
            return {"array": len(blobs) - 1}
        case InvalidInput():
            return {"error": type(value).__name__, "arguments": (value.field, value.given, value.allowed)}
        case MemoryError():
            return {"error": "MemoryError", "arguments": ()}
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {"kind": type(value).__name__, "fields": fields}


def _read(blobs: list[bytes], found: dict[str, Any]) -> Any:
    """What :func:`_written` has written; any other dictionary has arrays as values."""
    match found:
        case {"bytes": int(index)}:
            return blobs[index]
        case {"array": int(index)}:
            return np.load(io.BytesIO(blobs[index]), allow_pickle=False)
        case {"error": str(name), "arguments": list(arguments)}:
            return _ERRORS[name](*arguments)
        case {"kind": str(name), "fields": dict(fields)}:
            return _KINDS[name](**{field: _with_tuples(value) for field, value in fields.items()})
    return found


def _with_tuples(value: Any) -> Any:
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
