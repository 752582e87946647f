"""Format of numbers on pages, in summaries and in messages."""

import math

import pytest

from ntk_core.fits import PowerLaw, exponent_words, law_words
from ntk_core.numbers import duration, key_words, number, percent, signed, size, width_label


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.43, "43%"), (0.05, "5%"), (0.0042, "0.42%"), (0.0123, "1.2%"), (0.0996, "10%"), (0.999, "100%"),
        (12.345, "1,234%"), (0, "0%"), (-0.25, "−25%"), (-0.012, "−1.2%"), (math.nan, "–"), (math.inf, "∞"),
    ],
)  # fmt: skip
def test_percent(share, words):
    assert percent(share) == words


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (number(3.24e-8), "3.2·10⁻⁸"), (number(-0.5), "−0.5"), (signed(-0.001), "0.00"), (signed(-1.023), "−1.02"),
        (size(300), "300 bytes"), (size(1.5 * 2**20), "1.5 MiB"), (size(2.5 * 2**30), "2.5 GiB"),
        (duration(0.4), "under 1 s"), (duration(170), "3 min"), (duration(4800), "1 h 20 min"),
        (width_label(3000), "3,000"), (width_label(12_345), "12,345"), (width_label(3_000_000), "3·10⁶"),
    ],
)  # fmt: skip
def test_numbers_sizes_and_durations(words, expected):
    assert words == expected


def test_exponents_have_a_true_minus():
    law = PowerLaw(-0.5, 0.03, 1.0, 0.95, 12, 0)
    assert exponent_words(law) == "−0.50 ± 0.03"
    assert law_words(law, "m") == "m^(−0.500 ± 0.030), 95% interval, 12 runs, 0 excluded"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("width=10000", "width 10,000"),
        ("input_dim=50", "input dimension 50"),
        ("width=1000,rate=0.00125", "width 1,000, rate 0.00125"),
        ("width=100_network=fully-connected-swish", "width 100 network fully connected swish"),
    ],
)
def test_keys_are_read_as_words(key, words):
    assert key_words(key) == words
