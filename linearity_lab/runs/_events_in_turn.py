"""Events of a computation for a loop: ``for event in run(spec)``.

A computation hands its events to a callback. For a loop it runs in a thread that works only while the loop waits for
the next event, so code of the loop and of the computation never runs at the same time
(docs/decisions/0016-progress.md).
"""

import atexit
import contextlib
import contextvars
import queue
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from ntk_core.progress import Stopped

Item = TypeVar("Item")

# JAX keeps what its context managers set in each thread: attribute of jax.config → name of the manager in jax.
_JAX_CONTEXTS = {
    "jax_enable_x64": "enable_x64",
    "jax_default_device": "default_device",
    "jax_default_matmul_precision": "default_matmul_precision",
    "jax_default_prng_impl": "default_prng_impl",
    "jax_threefry_partitionable": "threefry_partitionable",
    "jax_numpy_rank_promotion": "numpy_rank_promotion",
    "jax_numpy_dtype_promotion": "numpy_dtype_promotion",
    "jax_disable_jit": "disable_jit",
    "jax_debug_nans": "debug_nans",
    "jax_debug_infs": "debug_infs",
    "jax_check_tracer_leaks": "checking_leaks",
    "jax_log_compiles": "log_compiles",
    "jax_transfer_guard_host_to_device": "transfer_guard_host_to_device",
    "jax_transfer_guard_device_to_device": "transfer_guard_device_to_device",
    "jax_transfer_guard_device_to_host": "transfer_guard_device_to_host",
}
_WITHOUT_VALUE = {"checking_leaks"}  # managers that only switch on


def in_turn(
    work: Callable[[Callable[[Item], None]], object],
) -> Generator[Item, None, None]:
    """Yield what ``work(hear)`` passes to ``hear``; its error is raised here.

    ``hear`` returns when the next item is asked for. Closing the generator lets it raise :class:`Stopped` instead, and
    waits until the work has ended.
    """
    worker = _Worker(work)
    worker.start()
    try:
        while worker.goes_on():
            yield worker.item
    finally:
        worker.stop()


class _Worker(Generic[Item]):
    """A thread that works while its caller waits in :meth:`goes_on`.

    Attributes:
        item: the last one passed to ``hear``.
    """

    item: Item

    def __init__(self, work: Callable[[Callable[[Item], None]], object]):
        self._work = work
        self._turns: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: stop
        self._answers: queue.SimpleQueue[bool] = queue.SimpleQueue()  # False: ended
        self._error: BaseException | None = None
        self._jax = jax_contexts()
        # Context variables hold numpy's error state and the place of a notebook's output.
        context = contextvars.copy_context()
        # A daemon, since a loop left at the end of a program must not keep Python alive; see _end.
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="linearity-lab-run", daemon=True
        )

    def start(self) -> None:
        """Start the thread, which waits for its first turn."""
        self._thread.start()
        atexit.register(self.stop)

    def goes_on(self) -> bool:
        """Work until the next item, and return whether there is one; raise the error of the work."""
        self._turns.put(True)
        goes_on = self._answers.get()
        if self._error is not None:
            error = self._error
            self._error = None  # whose traceback refers to this object
            raise error
        return goes_on

    def stop(self) -> None:
        """End the work at its next item, and wait for it."""
        self._turns.put(False)
        # The garbage collector may close a forgotten loop in the thread itself.
        if threading.current_thread() is not self._thread:
            self._thread.join()
        atexit.unregister(self.stop)

    def _run(self) -> None:
        try:
            self._wait()
            with entered(self._jax):
                self._work(self._hear)
        except Stopped:
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._answers.put(False)

    def _hear(self, item: Item) -> None:
        self.item = item
        self._answers.put(True)
        self._wait()

    def _wait(self) -> None:
        if not self._turns.get():
            self._turns.put(False)  # work that goes on after a stop is stopped again
            raise Stopped


def jax_contexts() -> dict[str, Any]:
    """Return what JAX's context managers have set in this thread; empty before JAX is imported."""
    jax = sys.modules.get("jax")
    if jax is None:
        return {}
    found = {name: getattr(jax.config, name) for name in _JAX_CONTEXTS}
    found["mesh"] = jax.sharding.get_mesh()
    return found


@contextlib.contextmanager
def entered(contexts: dict[str, Any]) -> Generator[None, None, None]:
    """Context in which JAX has these settings in this thread too; only different ones are set."""
    jax = sys.modules.get("jax")
    if jax is None or not contexts:
        yield
        return
    here = jax_contexts()
    with contextlib.ExitStack() as stack:
        for name, value in contexts.items():
            if value == here[name]:
                continue
            if name == "mesh":
                stack.enter_context(jax.set_mesh(value))
                continue
            manager = getattr(jax, _JAX_CONTEXTS[name])
            if _JAX_CONTEXTS[name] in _WITHOUT_VALUE:
                stack.enter_context(manager())
            else:
                stack.enter_context(manager(value))
        yield
