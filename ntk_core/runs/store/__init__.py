"""Results by digest: finished points are durable at once, damaged entries are set aside and recomputed. Free of JAX.

``LINEARITY_LAB_STORE`` is the path of a SQLite file (not on a network file system) or the SQLAlchemy URL of a database;
by default a file in the user's data directory. Several threads and processes may read and write one store. When it
grows beyond ``LINEARITY_LAB_STORE_BYTES``, the runs that were used longest ago go.
"""

from ntk_core.runs.store._clocks import JobClock, ListedJob
from ntk_core.runs.store._database import VARIABLE
from ntk_core.runs.store._eviction import LIMIT_VARIABLE
from ntk_core.runs.store._ledger import Ledger, UnfinishedJob
from ntk_core.runs.store._listing import MIN_PREFIX, STATUSES, RunList, StoredRun
from ntk_core.runs.store._marks import MAX_MARKS, MAX_NAME, MAX_NOTE, Mark
from ntk_core.runs.store._run_file import Imported, read_runs, write_runs
from ntk_core.runs.store._store import Store, StoredPoints
