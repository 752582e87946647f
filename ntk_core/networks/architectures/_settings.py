"""Checks that all architectures share: each refuses with the name of the setting."""

from ntk_core.errors import InvalidInput

MAX_WIDTH = 10_000_000
MAX_DEPTH = 64
MAX_OUTPUTS = 10_000
TRAINED = ("all", "first", "hidden", "last")


def check_count(field: str, given: object, highest: int, lowest: int = 1) -> int:
    """``given`` as an integer in [lowest, highest], else InvalidInput."""
    if isinstance(given, bool) or not isinstance(given, int) or not lowest <= given <= highest:
        raise InvalidInput(field, given, f"an integer from {lowest:,} to {highest:,}")
    return given


def check_choice(field: str, given: object, allowed: tuple[str, ...]) -> None:
    """Refuse a name that is not one of ``allowed``."""
    if given not in allowed:
        raise InvalidInput(field, given, "one of " + ", ".join(allowed))


def check_switch(field: str, given: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(given, bool):
        raise InvalidInput(field, given, "True or False")


def check_drop_probability(given: object) -> None:
    """Refuse a probability outside [0, 1): at 1 no edge is left."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1:
        raise InvalidInput("drop_probability", given, "a number from 0 up to, but not including, 1")


def hidden_widths(width: int | tuple[int, ...], depth: int) -> tuple[int, ...]:
    """One width per hidden layer, from a single number or a tuple of ``depth`` numbers."""
    if isinstance(width, tuple):
        if len(width) != depth:
            raise InvalidInput("width", width, f"one integer, or a tuple of {depth} integers (one a hidden layer)")
        return tuple(check_count("width", each, MAX_WIDTH) for each in width)
    return (check_count("width", width, MAX_WIDTH),) * depth


def hidden_biases(use_bias: bool | tuple[bool, ...], depth: int) -> tuple[bool, ...]:
    """Bias on or off for each hidden layer, from a single switch or a tuple of ``depth`` switches."""
    if isinstance(use_bias, tuple):
        if len(use_bias) != depth:
            raise InvalidInput("use_bias", use_bias, f"True, False, or a tuple of {depth} of them (one a hidden layer)")
        for each in use_bias:
            check_switch("use_bias", each)
        return use_bias
    check_switch("use_bias", use_bias)
    return (use_bias,) * depth
