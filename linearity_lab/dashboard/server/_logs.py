"""Logs as one JSON object per line, without data that identify users or their work."""

import json
import logging
import sys
import time
import traceback
from pathlib import Path
from typing import TextIO

OWN = ("linearity_lab", "ntk_core")


class JsonFormatter(logging.Formatter):
    """A record as JSON.

    It has time, level, logger, place in the code, and the facts of this project's own records.

    Messages of other libraries and texts of exceptions are omitted: they may quote
    addresses, files and values.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "place": f"{record.module}:{record.lineno}",
        }
        if _is_own(record):
            entry["event"] = str(record.msg)  # without its arguments
            entry.update(getattr(record, "facts", {}))
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            entry["trace"] = [
                f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames
            ]
        return json.dumps(entry)


class _OneWayLogger(logging.Logger):
    """A logger whose records reach only the root's handlers.

    The configuration of its library changes nothing.
    """

    def addHandler(self, hdlr: logging.Handler) -> None:
        """Ignore handlers of libraries."""

    def callHandlers(self, record: logging.LogRecord) -> None:
        """Use the root's handlers, also with ``propagate`` off."""
        logging.getLogger().callHandlers(record)


def write_json_logs(stream: TextIO | None = None) -> None:
    """Send every log record of this process to ``stream`` (stdout) as JSON, and nowhere else."""
    handler = logging.StreamHandler(stream or sys.stdout)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or _is_own(record))
    logging.captureWarnings(True)
    logging.getLogger().handlers[:] = [handler]
    for name in OWN:
        logging.getLogger(name).setLevel(logging.INFO)
    logging.setLoggerClass(_OneWayLogger)  # for libraries that are loaded later
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers[:] = []
            logger.propagate = True
            # Streamlit adds its handlers again whenever its configuration file changes.
            logger.__class__ = _OneWayLogger


def _is_own(record: logging.LogRecord) -> bool:
    return record.name.partition(".")[0] in OWN
