"""Text for people: amounts, durations, and words from outside made harmless for Markdown."""

import re

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+!|<>~$:&^-])")
_ADDRESS = re.compile(r"(https?:(?=//)|\bwww(?=\.)|@)", re.IGNORECASE)
_POWER = re.compile(r"\bm\^\(([-−±\d./ ρ]+)\)")


def plain(text: str) -> str:
    """``text`` so that Markdown shows it as it is: no link, image, formula, icon or color comes out of it.

    What looks like an address becomes a link after everything else was read, whatever is escaped in it: a character
    without a width keeps it apart.
    """
    return _MARKDOWN.sub(r"\\\1", _ADDRESS.sub("\\1\u2060", " ".join(text.split())))


def typeset(text: str) -> str:
    """``text`` as by :func:`plain`, but with ``m^(-1/2)`` and the like as formulas."""
    pieces = _POWER.split(" ".join(text.split()))
    pieces[::2] = [_MARKDOWN.sub(r"\\\1", each) for each in pieces[::2]]
    pieces[1::2] = ["$m^{" + each.replace("ρ", r"\rho ") + "}$" for each in pieces[1::2]]
    return "".join(pieces)
