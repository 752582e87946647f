"""The published table is what was measured."""

from benchmarks.table import PAGE, page


def test_the_page_of_benchmarks_shows_the_committed_results():
    assert PAGE.read_text() == page()
