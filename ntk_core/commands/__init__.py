"""Commands for data and models of one's own, one module each."""

from ntk_core.commands import _data, _own

COMMANDS = (_data, _own)

__all__ = ["COMMANDS"]
