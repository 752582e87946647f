"""Words for people: what comes from outside stays words, powers of the width become formulas, errors say the digits."""

from __future__ import annotations

import pytest

from linearity_lab.views.hessian.figures import amount
from linearity_lab.words.markdown import raised, typeset
from ntk_core.runs import Mean


@pytest.mark.parametrize("exponent", ["-1/2", "−0.52 ± 0.12"])
def test_a_power_of_the_width_is_a_formula(exponent):
    assert typeset(f"decreases like m^({exponent}), about") == f"decreases like $m^{{{exponent}}}$, about"
    assert typeset("like m^(2ρ - 1)") == r"like $m^{2\rho  - 1}$"
    assert typeset("‖H‖ ∝ r^(−0.44 ± 0.09)") == "‖H‖ ∝ $r^{−0.44 ± 0.09}$"


@pytest.mark.parametrize("text", ["[a](http://b)", "m^(x$y)", "*b* $c$", "![i](j)", "m^([a](b))"])
def test_no_other_markup_gets_through(text):
    assert typeset(text).replace("\\", "") == text
    assert not any(text[at] in "[]()*$!^" and typeset(text).count("\\" + text[at]) == 0 for at in range(len(text)))


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (12.34, 0.62, "12.3 ± 0.6"),
        (1.02, 0.2, "1.0 ± 0.2"),
        (0.6, 0.006, "0.600 ± 0.006"),
        (0.0999, 0.0096, "0.10 ± 0.01"),
        (150.0, 31.0, "150 ± 31"),
        (0.25, float("nan"), "0.25"),
    ],
)
def test_a_mean_has_the_digits_that_its_error_leaves(value, error, words):
    assert amount(Mean(value=value, standard_error=error, count=3)) == words


def test_powers_in_html_are_raised_and_everything_else_is_text():
    assert raised("‖H‖ ∝ r^(-0.44 ± 0.09), <b>") == "‖H‖ ∝ <i>r</i><sup>−0.44 ± 0.09</sup>, &lt;b&gt;"
