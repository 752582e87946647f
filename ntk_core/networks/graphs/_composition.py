"""A network's hidden part as a list of registered layers, from JSON and back."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from pydantic import BaseModel, Field, ValidationError

from ntk_core.allowed import allowed_values
from ntk_core.errors import InvalidInput
from ntk_core.markup import JSON
from ntk_core.networks.graphs import _steps
from ntk_core.networks.graphs._blocks import BLOCKS, Block, FunctionName, Nested, Trained
from ntk_core.networks.graphs._written import Written, inner_problem, read_object

MAX_BYTES = 20_000
MAX_BLOCKS = 64
MAX_NESTING = 4
ALLOWED = (
    'an object such as {"layers": [{"kind": "dense", "width": "m"}, {"kind": "activation", '
    '"function": "tanh"}]}'
)


class Composition(Written):
    """Layers from the input to the last hidden one; a dense output layer without bias is implied.

    As a graph, a chain with skips around residual and concat blocks: see :attr:`steps`.

    >>> activation = '{"kind": "activation", "function": "erf"}'
    >>> composition = parse_composition('{"layers": [{"kind": "dense"}, ' + activation + ']}')
    >>> str(composition)
    '{"layers":[{"kind":"dense","width":"m"},{"kind":"activation","function":"erf"}]}'

    Attributes:
        layers: registered layers; residual and concat blocks contain layers.
        drop_probability: of each edge of the dense layers, including the output layer; 0 in JSON.
    """

    layers: tuple[Block, ...] = Field(min_length=1, strict=False)
    drop_probability: float = 0.0

    if TYPE_CHECKING:

        def __init__(self, layers: Sequence[Block], drop_probability: float = 0.0): ...

    @classmethod
    def problem(cls, error: ValidationError, given: JSON) -> InvalidInput:
        """Return the first error with its place, without pydantic's union tags."""
        detail = error.errors(include_url=False)[0]
        *path, last = [part for part in detail["loc"] if part not in BLOCKS] or [""]
        place = ".".join(
            str(part + 1) if isinstance(part, int) else str(part) for part in (*path, last)
        )
        kind = next((part for part in reversed(detail["loc"]) if part in BLOCKS), None)
        model: type[BaseModel] = BLOCKS[str(kind)] if kind else cls
        if raised := inner_problem(error):
            return InvalidInput(place, raised.given, raised.allowed)
        match detail["type"]:
            case "extra_forbidden":
                outer = ".".join(place.split(".")[:-1]) or "layers"
                return InvalidInput(
                    outer,
                    str(last),
                    "only " + ", ".join(sorted(set(model.model_fields) - {"drop_probability"})),
                )
            case "missing":
                return InvalidInput(place, "nothing", _allowed(model, str(last)))
            case "union_tag_invalid" | "union_tag_not_found":
                given = (
                    detail["input"].get("kind", "nothing")
                    if isinstance(detail["input"], dict)
                    else detail["input"]
                )
                return InvalidInput(f"{place}.kind", given, "one of " + ", ".join(BLOCKS))
            case "model_attributes_type" | "model_type" | "dict_type":
                return InvalidInput(
                    place, detail["input"], "an object with a kind, one of " + ", ".join(BLOCKS)
                )
        return InvalidInput(place, detail["input"], _allowed(model, str(last)))

    @cached_property
    def steps(self) -> tuple[_steps.Step, ...]:
        """The network as a graph of steps, the output layer last."""
        return _steps.composition_steps(self.layers, self.drop_probability)

    def data(self) -> JSON:
        """Return JSON data: widths always, other settings unless at their defaults."""
        return {"layers": [_block_data(block) for block in self.layers]}

    def trained(self) -> list[Trained]:
        """The layers with weights, in order of evaluation."""
        return [block for _, block in positions(self.layers) if isinstance(block, Trained)]

    def roles(self) -> tuple[str, ...]:
        """Role of each of :meth:`trained`.

        ``queries``, ``keys``, ``values``, ``gains``, ``positions``, or "".
        """
        return tuple(block.role for block in self.trained())

    def connections(self) -> _steps.Connections:
        """Skip connections, and the layers that read only the input."""
        return _steps.find_connections(self.steps)

    def trains(self, choice: str) -> tuple[bool, ...]:
        """Whether each of :meth:`trained`, then the output layer, is trained under this choice."""
        first = self.connections().first
        blocks = self.trained()
        hidden = (
            _steps.trains_hidden(choice, number in first) and not block.frozen
            for number, block in enumerate(blocks, start=1)
        )
        return (*hidden, _steps.trains_output(choice))

    def functions(self) -> tuple[FunctionName, ...]:
        """The activations in use."""
        found = [
            block.function for _, block in positions(self.layers) if block.kind == "activation"
        ]
        return tuple(dict.fromkeys(found))


def parse_composition(data: object) -> Composition:
    """Parse a composition.

    JSON text or parsed mapping → composition.

    >>> len(parse_composition({"layers": [{"kind": "dense", "width": "m"}]}).layers)
    1

    Args:
        data: JSON text or a mapping with ``layers``.

    Returns:
        A composition.

    Raises:
        InvalidInput: one sentence with the place (``layers.2.width``), the given and the allowed
            values.

    Source: our choice, docs/own-data-and-models.md.
    """
    if isinstance(data, Composition):
        return data
    data = read_object(data, "layers", MAX_BYTES, ALLOWED)
    _check_nesting(data.get("layers"))
    if "drop_probability" in data:
        raise InvalidInput("layers", "drop_probability", "only layers")
    found = Composition(**data)
    if not found.trained():
        raise InvalidInput(
            "layers", "no layer with weights", "at least one dense layer or convolution"
        )
    return found


def positions(layers: tuple[Block, ...], prefix: str = "layers") -> Iterator[tuple[str, Block]]:
    """(place such as ``layers.3.layers.1``, block) of every block, in order of evaluation."""
    for index, block in enumerate(layers, start=1):
        yield f"{prefix}.{index}", block
        if isinstance(block, Nested):
            yield from positions(block.layers, f"{prefix}.{index}.layers")


def _check_nesting(layers: object) -> None:
    """Refuse too deep or too long input before parsing."""
    level = [layers]
    depth = 0
    total = 0
    while level:
        lists = [each for each in level if isinstance(each, list | tuple)]
        blocks = [block for each in lists for block in each if isinstance(block, dict)]
        total = total + sum(map(len, lists))
        depth = depth + bool(lists)
        if total > MAX_BLOCKS:
            raise InvalidInput(
                "layers", f"more than {MAX_BLOCKS} layers", f"at most {MAX_BLOCKS} with inner ones"
            )
        if depth > MAX_NESTING:
            raise InvalidInput(
                "layers", f"layers inside layers, {depth} deep", f"at most {MAX_NESTING} deep"
            )
        level = [block.get("layers") for block in blocks]


def _block_data(block: Block) -> JSON:
    values: JSON = {"kind": block.kind}
    for name, info in type(block).model_fields.items():
        value = getattr(block, name)
        if name == "layers":
            values[name] = [_block_data(each) for each in value]
        elif name == "width" or (name != "kind" and value != info.default):
            values[name] = value
    return values


def _allowed(model: type[BaseModel], name: str) -> str:
    info = model.model_fields.get(name)
    if info is None or name == "layers":
        return "a list of at least one layer"
    return allowed_values(info)
