"""Caches bounded by bytes."""

import threading

from linearity_lab.dashboard.jobs.sized_cache import SizedCache


def test_least_recently_used_values_leave_first():
    cache = SizedCache[str](10, len)
    for text in ("aaaa", "bbbb"):
        assert cache.get(text[0], lambda text=text: text) == text
    assert cache.get("a", lambda: "made again") == "aaaa"
    cache.get("c", lambda: "cccc")
    assert cache.held_bytes == 8
    assert cache.get("a", lambda: "made again") == "aaaa"
    assert cache.get("b", lambda: "new") == "new"


def test_value_beyond_the_bound_is_returned_and_not_kept():
    cache = SizedCache[str](10, len)
    cache.get("a", lambda: "aaaa")
    assert cache.get("b", lambda: "b" * 11) == "b" * 11
    assert cache.held_bytes == 4
    assert cache.get("a", lambda: "") == "aaaa"


def test_simultaneous_callers_make_a_value_once():
    cache, made, together = SizedCache[str](10, len), [], threading.Barrier(8)

    def make() -> str:
        made.append(1)
        return "value"

    def ask() -> None:
        together.wait()
        assert cache.get("key", make) == "value"

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]


def test_failed_value_is_made_again():
    cache = SizedCache[str](10, len)
    for _ in range(2):
        try:
            cache.get("key", lambda: str(1 / 0))
        except ZeroDivisionError:
            continue
        raise AssertionError
    assert cache.get("key", lambda: "value") == "value"
