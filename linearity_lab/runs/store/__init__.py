"""Store results by digest in SQLite or Postgres; finished points are durable immediately.
Without JAX.

``LINEARITY_LAB_STORE`` is the path of a SQLite file (not on a network file system) or the
SQLAlchemy URL of a database; by default a file in the user's data directory. Several threads and
processes may read and write one store. Above ``LINEARITY_LAB_STORE_BYTES`` the least recently
used runs are deleted.
"""

from linearity_lab.runs._documents import Reading
from linearity_lab.runs.store._database import VARIABLE, check_location
from linearity_lab.runs.store._entries import (
    MAX_NAME,
    MAX_NOTE,
    MIN_PREFIX,
    STATUSES,
    Mark,
    RunList,
    RunTooLarge,
    StoredRun,
    UnfinishedJob,
)
from linearity_lab.runs.store._known_run import READING_WORDS, KnownRun
from linearity_lab.runs.store._run_file import (
    Imported,
    UnusableLine,
    read_line,
    read_runs,
    run_line,
    write_runs,
)
from linearity_lab.runs.store._store import Store, StoredPoints, partial_result
