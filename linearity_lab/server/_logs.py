"""Logs as one JSON object per line, without anything that tells who used the server or what for."""

import json
import logging
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

OWN = ("linearity_lab", "ntk_core")


class JsonFormatter(logging.Formatter):
    """A record as a JSON object: time, level, logger, the place in the code, and what this project itself says.

    Of this project's records the text is kept without what was filled into it, and ``extra={"facts": {...}}``, which
    callers keep free of user data. Texts of other libraries are left out, since they name addresses, files and
    values; so are the texts of exceptions, of which the type and the places in the code are kept.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "place": f"{record.module}:{record.lineno}",
        }
        if _is_own(record):
            entry["event"] = str(record.msg)
            entry.update(getattr(record, "facts", {}))
        if more := getattr(record, "left_out", 0):
            entry["left_out"] = more  # of the same place, since the line before
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            entry["trace"] = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
        return json.dumps(entry)


class Rarely:
    """A filter of a handler: of one place in the code at most ``most`` records in ``per_s`` seconds."""

    def __init__(self, most: int = 20, per_s: float = 60.0, clock: Callable[[], float] = time.monotonic):
        self._most, self._per_s, self._clock = most, per_s, clock
        self._seen: dict[tuple[str, str, int], tuple[float, int, int]] = {}  # place → since, count, left out

    def __call__(self, record: logging.LogRecord) -> bool:
        place, now = (record.name, record.pathname, record.lineno), self._clock()
        since, count, left_out = self._seen.get(place, (now, 0, 0))
        if now - since >= self._per_s:
            since, count = now, 0
        if count >= self._most:
            self._seen[place] = since, count, left_out + 1
            return False
        self._seen[place] = since, count + 1, 0
        record.left_out = left_out
        return True


class _OneWayLogger(logging.Logger):
    """A logger whose records only reach the handler of the root, whatever its library asks for."""

    def addHandler(self, hdlr: logging.Handler) -> None:
        """No handler but the root's."""

    def callHandlers(self, record: logging.LogRecord) -> None:
        """To the root, also where ``propagate`` was turned off."""
        for handler in logging.getLogger().handlers:
            if record.levelno >= handler.level:
                handler.handle(record)


def write_json_logs(stream: TextIO | None = None) -> None:
    """Send every log record of this process to ``stream`` (stdout) in this form, and to nowhere else."""
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or _is_own(record))
    handler.addFilter(Rarely())
    logging.captureWarnings(True)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    for name in OWN:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.setLoggerClass(_OneWayLogger)  # for libraries that are loaded later
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers[:] = []
            logger.propagate = True


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in OWN
