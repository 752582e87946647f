"""Synthetic sequences of tokens: symbols whose label is a function of them, and random labels."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linearity_lab.data._dataset import MEANS, IntArray, uniform_integers
from linearity_lab.data._info import DatasetShapes, Drawn, Samples, shapes_of
from linearity_lab.data._options import Options
from ntk_core.errors import InvalidInput
from ntk_core.streams import stream

Symbols = tuple[IntArray, IntArray]  # symbols (n, T) from 0 to V − 1, labels (n,)
Rule = Callable[[Callable[[int], np.random.Generator], int, int, int], Symbols]
_OURS = "Our choice of law. No licence applies."


@dataclass(frozen=True, kw_only=True)
class SymbolTask(Drawn):
    """Sequences of T symbols whose label is a function of them; each symbol is a vector.

    Token t of a sequence s is e_{s_t}, with e_0 … e_{V−1} ~ N(0, I_d) drawn once for all sequences.
    Tokens do not encode positions; networks that need them add them.

    Attributes:
        rule: name of a function in ``RULES``: (generators, n, T, V) → symbols and labels; the first
            k of n sequences do not depend on n.
        num_symbols: V if fixed by the task; 0 if set by an option.
        least_tokens: smallest T of the rule.
        odd: whether T has to be odd.
    """

    law = (
        f"Synthetic sequences. {{formula}} Test sequences are drawn in the same way and may "
        f"repeat others. {_OURS}"
    )

    rule: str
    num_symbols: int = 0
    least_tokens: int = 1
    odd: bool = False

    def shapes(self, options: Options) -> DatasetShapes:
        names = tuple(f"symbol {index}" for index in range(self._count(options)))
        return shapes_of(options, (options["num_tokens"], options["input_dim"]), names)

    def check(self, options: Options) -> None:
        """Also refuse lengths that the rule excludes."""
        super().check(options)
        given = options["num_tokens"]
        if given < self.least_tokens or (self.odd and given % 2 == 0):
            allowed = (
                "an odd number, so that there is no tie"
                if self.odd
                else f"at least {self.least_tokens}"
            )
            raise InvalidInput(
                "num_tokens",
                given,
                f"{allowed}, for {self.name}",
                max(given - 1, self.least_tokens),
            )

    def draw(self, options: Options, num: int, split: int) -> Samples:
        count = self._count(options)
        seed = options["seed"]
        embedding = stream(seed, MEANS).standard_normal(
            (count, options["input_dim"]), dtype=np.float32
        )
        symbols, labels = RULES[self.rule](
            lambda part: stream(seed, split, part), num, options["num_tokens"], count
        )
        return embedding[symbols], labels

    def _count(self, options: Options) -> int:
        return self.num_symbols or int(options["num_symbols"])


class RandomSequences(Drawn):
    """Sequences of independent normal tokens.

    Their random targets ±1 can only be memorized.
    """

    law = f"Synthetic sequences. {{formula}} {_OURS}"

    def shapes(self, options: Options) -> DatasetShapes:
        return shapes_of(options, (options["num_tokens"], options["input_dim"]), ())

    def draw(self, options: Options, num: int, split: int) -> Samples:
        shape = self.shapes(options).input_shape
        seed = options["seed"]
        x = stream(seed, split, 0).standard_normal((num, *shape), dtype=np.float32)
        return x, 2 * uniform_integers(stream(seed, split, 1), (num, 1), 2) - 1


def copy(draw: Callable[[int], np.random.Generator], n: int, length: int, count: int) -> Symbols:
    """s_1 … s_T uniform on V symbols; the label is s_1; all other tokens are distractors."""
    symbols = uniform_integers(draw(0), (n, length), count)
    return symbols, symbols[:, 0]


def majority(
    draw: Callable[[int], np.random.Generator], n: int, length: int, count: int
) -> Symbols:
    """s_1 … s_T uniform on two symbols, T odd; the label is the symbol that occurs more often."""
    symbols = uniform_integers(draw(0), (n, length), count)
    return symbols, (2 * symbols.sum(axis=1) > length).astype(np.int64)


def modular_addition(
    draw: Callable[[int], np.random.Generator], n: int, length: int, count: int
) -> Symbols:
    """s_1 … s_T uniform on 0 … V − 1; the label is s_1 + … + s_T modulo V."""
    symbols = uniform_integers(draw(0), (n, length), count)
    return symbols, symbols.sum(axis=1) % count


def induction(
    draw: Callable[[int], np.random.Generator], n: int, length: int, count: int
) -> Symbols:
    """… a b … a → b: the last symbol occurred once before.

    The label is the symbol that followed it.

    a is uniform on V symbols, its first place j on 1 … T − 2; s_j = s_T = a, every other symbol is
    uniform on the symbols except a, and the label is s_{j+1}.
    """
    last = uniform_integers(draw(0), (n,), count)
    place = uniform_integers(draw(1), (n,), length - 2)
    symbols = uniform_integers(draw(2), (n, length), count - 1)
    symbols += symbols >= last[:, None]  # uniform on all but a
    rows = np.arange(n)
    symbols[rows, place] = symbols[:, -1] = last
    return symbols, symbols[rows, place + 1]


RULES: dict[str, Rule] = {
    each.__name__: each for each in (copy, majority, modular_addition, induction)
}
