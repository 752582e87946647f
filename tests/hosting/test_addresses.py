"""Who counts as one visitor of a server."""

from __future__ import annotations

import pytest

from linearity_lab.server import address_of_line


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("", ""),
        ("a socket", "a socket"),
    ],
)
def test_an_ipv6_line_counts_as_one_address(address, line):
    assert address_of_line(address) == line
