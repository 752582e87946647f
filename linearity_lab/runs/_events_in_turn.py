"""Events of a computation for a loop: ``for event in run(spec)``.

A computation hands its events to a callback. For a loop it runs in a thread that works only while
the loop waits for the next event, so code of the loop and of the computation never runs at the same
time (docs/decisions/0016-progress.md).
"""

import atexit
import contextvars
import queue
import threading
from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from linearity_lab.runs.jax_contexts import entered, jax_contexts
from ntk_core.progress import Stopped

Item = TypeVar("Item")


def in_turn(
    work: Callable[[Callable[[Item], None]], object],
) -> Generator[Item, None, None]:
    """Yield what ``work(hear)`` passes to ``hear``; its error is raised here.

    ``hear`` returns when the next item is asked for. Closing the generator lets it raise
    :class:`Stopped` instead, and waits until the work has ended.
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
        """Work until the next item, and return whether there is one.

        Raise the error of the work.
        """
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
            self._turns.put(False)  # work that continues after a stop is stopped again
            raise Stopped
