"""Counts of wrong Hessian norms: the documentation shows the committed ones, and they are rare."""

import pytest

from benchmarks import hessian_failures
from ntk_core.hessians import hessian_eigenpairs, hessian_norm

COUNTS = hessian_failures.committed()


def test_the_page_shows_the_committed_counts():
    page = hessian_failures.PAGE.read_text()
    assert page == hessian_failures.page_with_table(page, COUNTS)


@pytest.mark.parametrize("of", [hessian_norm, hessian_eigenpairs])
def test_docstrings_state_the_committed_counts(of):
    words = " ".join(of.__doc__.split())
    assert hessian_failures.sentences(COUNTS)[of.__name__] in words


def test_at_most_one_norm_in_a_thousand_is_wrong():
    for cell in COUNTS["norms"]:
        assert cell["converged"] > 0
        assert cell["outside"] <= 1e-3 * cell["converged"], cell
    narrow = [cell for cell in COUNTS["norms"] if cell["depth"] == 1 and cell["width"] <= 16]
    assert {cell["width"] for cell in narrow} == {4, 16}
    assert {cell["tolerance"] for cell in narrow} == set(hessian_failures.TOLERANCES)
    assert min(cell["converged"] for cell in narrow) >= 6000
