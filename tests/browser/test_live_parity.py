"""The browser's numbers on *Live* equal those of ``ntk_core`` in float64 from the same weights."""

import functools
import itertools
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ntk_core
from linearity_lab.dashboard.live import source
from linearity_lab.dashboard.live.settings import CHOICES

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.usefixtures("quick_compilation")]
ACTIVATIONS = CHOICES["activation"]
LAYERS = {
    "one": (1, 0),
    "two": (2, 0),
    "one and bottleneck": (1, 3),
    "bottleneck between two": (2, 3),
}
POINTS = [[-1.7, 0.3], [-0.9, -0.8], [-0.2, 0.1], [0.4, 0.9], [1.1, 0.2], [1.9, -0.6]]
GRID = [-2.5, -1.0, 0.0, 0.7, 2.2]
OUTPUTS = CHOICES["output"]
# Outputs act on pre-outputs alone, so each activation in one layer and each deeper network
# meets one of them.
SETTINGS = [
    (8, "one", activation, OUTPUTS[column % len(OUTPUTS)])
    for column, activation in enumerate(ACTIVATIONS)
]
# Larger widths use other products and single precision.
SETTINGS += [
    (
        width,
        layers,
        ACTIVATIONS[(row + column) % len(ACTIVATIONS)],
        OUTPUTS[(row + column) % len(OUTPUTS)],
    )
    for row, (width, first) in enumerate(((8, 1), (128, 2), (2048, 0)))
    for column, layers in enumerate(list(LAYERS)[first:])
]
STEPS, SEED, RATE = 7, 5, 1.0
ABOUT = 1e-4  # relative, in the norm of the whole array
RUN = """async ([start, steps]) => {
  const training = new (await window.model).Training(start);
  while (training.time < steps) training.step();
  const state = training.state();
  const { curve, linearCurve, outputs, linear, kernel, change, loss, linearLoss } = state;
  const found = { curve, linearCurve, outputs, linear, kernel, startKernel: training.startKernel };
  for (const name of Object.keys(found)) found[name] = Array.from(found[name]);
  return { ...found, change, loss, linearLoss };
}"""


ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(
    key: tuple[int, int], count0: np.ndarray, count1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Two words of 32 bits for each counter, by 20 rounds (Salmon, Moraes, Dror & Shaw 2011)."""
    keys = [np.uint32(key[0]), np.uint32(key[1]), np.uint32(key[0] ^ key[1] ^ 0x1BD11BDA)]
    with np.errstate(over="ignore"):
        a, b = count0.astype(np.uint32) + keys[0], count1.astype(np.uint32) + keys[1]
        for group in range(5):
            for rotation in ROTATIONS[group % 2]:
                a = a + b
                b = ((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))) ^ a
            a = a + keys[(group + 1) % 3]
            b = b + keys[(group + 2) % 3] + np.uint32(group + 1)
    return a, b


def normals(seed: int, tensor: int, rows: int, columns: int) -> np.ndarray:
    """N(0, 1), (rows, columns).

    Counter (k, p) under (seed, tensor) gives entries 2p and 2p + 1 of row k.
    """
    pairs = (columns + 1) // 2
    row, pair = np.meshgrid(np.arange(rows), np.arange(pairs), indexing="ij")
    a, b = threefry((seed, tensor), row, pair)
    radius = np.sqrt(-2 * np.log((a.astype(np.float64) + 0.5) / 2**32))
    angle = 2 * np.pi * b.astype(np.float64) / 2**32
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return both.reshape(rows, 2 * pairs)[:, :columns]


def params(hidden: tuple[int, ...], seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Parameters of a network of ``ntk_core``.

    ``hidden1``, …, ``output``, each (fan_in, neurons).
    """
    sizes = (1, *hidden, 1)
    found = {}
    for index, (fan_in, neurons) in enumerate(itertools.pairwise(sizes)):
        layer = {"weight": normals(seed, 2 * index, neurons, fan_in).T}
        if index < len(hidden):
            layer["bias"] = normals(seed, 2 * index + 1, 1, neurons)[0]
        found[f"hidden{index + 1}" if index < len(hidden) else "output"] = layer
    return found


@pytest.fixture(scope="module")
def model(browser) -> Iterator:
    """A page with the component's mathematics alone."""
    page = browser.new_page()
    page.evaluate(
        "text => { window.model = import(URL.createObjectURL(new Blob([text], { type: "
        "'text/javascript' }))) }",
        source.model_module(),
    )
    yield page
    page.close()


def away(found, expected) -> float:
    """‖found − expected‖ / ‖expected‖; 0 for equal arrays, such as two dead swish outputs."""
    found, expected = (
        np.asarray(found, np.float64).ravel(),
        np.asarray(expected, np.float64).ravel(),
    )
    difference = float(np.linalg.norm(found - expected))
    return difference / float(np.linalg.norm(expected)) if difference else 0.0


@functools.lru_cache(maxsize=1)
def drawn(hidden: tuple[int, ...]) -> dict:
    return jax.tree.map(jnp.asarray, params(hidden, SEED))


def by_the_core(
    hidden: tuple[int, ...], bottleneck: int, activation: str, output: str
) -> dict[str, jax.Array]:
    """Train the same network by ``ntk_core`` with automatic gradients,
    and its linear model by ``linearize``.
    """
    shared = {
        "width": hidden[0],
        "depth": len(hidden),
        "activation": activation,
        "output": output,
        "use_bias": False,
    }
    net = (
        ntk_core.Bottleneck(**shared, bottleneck_width=bottleneck, bottleneck_layer=2)
        if bottleneck
        else ntk_core.FullyConnected(**shared)
    )
    w = start = drawn(hidden)
    points, grid = np.array(POINTS), jnp.array(GRID)[:, None]
    x, y = jnp.asarray(points[:, :1]), jnp.asarray(points[:, 1:])
    start_kernel = ntk_core.empirical_ntk(net, start, x)[:, :, 0, 0]
    rate = RATE * len(x) / float(np.linalg.eigvalsh(np.asarray(start_kernel))[-1])
    linear_model = ntk_core.linearize(net, start)
    w_linear = start

    def moved(apply, at):
        gradient = jax.grad(lambda w: 0.5 * jnp.mean((apply(w, x) - y) ** 2))(at)
        return jax.tree.map(lambda weight, slope: weight - rate * slope, at, gradient)

    # Not compiled as a whole, because all networks of one size share their compiled
    # single operations.
    for _ in range(STEPS):
        w, w_linear = moved(net.apply, w), moved(linear_model, w_linear)
    kernel = ntk_core.empirical_ntk(net, w, x)[:, :, 0, 0]
    outputs, linear = net.apply(w, x), linear_model(w_linear, x)
    return {
        "curve": net.apply(w, grid),
        "linearCurve": linear_model(w_linear, grid),
        "outputs": outputs,
        "linear": linear,
        "kernel": kernel,
        "startKernel": start_kernel,
        "change": ntk_core.kernel_change(kernel, start_kernel),
        "loss": 0.5 * jnp.mean((outputs - y) ** 2),
        "linearLoss": 0.5 * jnp.mean((linear - y) ** 2),
    }


def test_the_generator_is_threefry_with_twenty_rounds(model):
    """Known answers from the authors' library,
    for the browser's generator and for that of the tests.
    """
    known = [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ]
    for key, count, words in known:
        arguments = [*key, *count]
        found = model.evaluate(
            "async words => { const out = [0, 0]; (await window.model).threefry(...words, out); "
            "return out }",
            arguments,
        )
        assert tuple(found) == words
        assert (
            tuple(int(each[0]) for each in threefry(key, *(np.array([value]) for value in count)))
            == words
        )


@pytest.mark.parametrize("shape", [(1, 7), (40, 1), (30, 50)])
def test_normal_numbers_are_those_of_the_generator_in_python(model, shape):
    found = model.evaluate(
        "async a => Array.from((await window.model).normals(...a))", [3, 2, *shape]
    )
    # Logarithm, sine and cosine are accurate to about one unit in the last place.
    assert np.abs(np.array(found).reshape(shape) - normals(3, 2, *shape)).max() < 1e-13


def test_normal_numbers_are_normal():
    """Moments of 10⁶ draws within five standard errors."""
    draws = normals(1, 4, 1000, 1000)
    for power, expected, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((draws**power).mean() - expected) < 5 * math.sqrt(variance / draws.size)


def test_erf_is_known_to_eleven_digits(model):
    z = np.linspace(-7, 7, 2001)
    found = model.evaluate(
        "async z => { const { erf } = await window.model; return z.map(erf) }", z.tolist()
    )
    assert np.abs(np.array(found) - [math.erf(value) for value in z]).max() < 4e-12


LARGE = """async ([exact, sizes, a, above, strengths]) => {
  const { LargeMatrix, precisionFor } = await window.model;
  const precision = precisionFor(...sizes, exact);
  const large = new LargeMatrix(precision, 3, 2, ...sizes, strengths.length);
  const zeros = (m) => new Float64Array(strengths.length * m);
  const z = zeros(sizes[0]), found = zeros(sizes[1]), after = zeros(sizes[0]);
  large.forward(a, strengths.length, 0.5, z);
  large.pull(above, strengths.length, 0.25, found);
  large.move(strengths, above, a);
  large.forward(a, strengths.length, 1, after);
  return [precision, ...[z, found, after].map((each) => Array.from(each))];
}"""


@pytest.mark.long
def test_large_matrix_products_equal_numpy(model):
    """Sizes that are not multiples of the block size, and odd numbers of inputs,
    in both precisions.
    """
    draw = np.random.default_rng(0).standard_normal
    for neurons, fan_in, n, precision in (
        (64, 64, 4, "double"),
        (67, 75, 3, "double"),
        (130, 65, 1, "double"),
        (65, 71, 30, "double"),
        (511, 519, 3, "single"),
        (1024, 1024, 20, "single"),
        (1024, 1024, 20, "double"),
    ):
        w, a, above, strengths = (
            normals(3, 2, neurons, fan_in),
            draw((n, fan_in)),
            draw((n, neurons)),
            draw(n),
        )
        given = [
            precision == "double",
            [neurons, fan_in],
            *(each.ravel().tolist() for each in (a, above, strengths)),
        ]
        used, *found = model.evaluate(LARGE, given)
        assert used == precision
        moved = w + (strengths[:, None] * above).T @ a
        for one, expected in zip(
            found, (0.5 * a @ w.T, 0.25 * above @ w, a @ moved.T), strict=True
        ):
            assert away(one, expected) < {"double": 1e-13, "single": 1e-6}[precision]


@pytest.mark.long_after(1)
@pytest.mark.parametrize(("width", "layers", "activation", "output"), SETTINGS)
def test_training_in_the_browser_is_training_by_the_core(
    model, x64, width, layers, activation, output
):
    """Function, linear model, kernel (in closed form at the start),
    ΔK and losses of each network.
    """
    depth, bottleneck = LAYERS[layers]
    hidden = (width, *((bottleneck,) if bottleneck else ()), *(width,) * (depth - 1))
    start = {
        "hidden": hidden,
        "activation": activation,
        "output": output,
        "seed": SEED,
        "rate": RATE,
    }
    found = model.evaluate(RUN, [{**start, "points": POINTS, "grid": GRID}, STEPS])
    expected = by_the_core(hidden, bottleneck, activation, output)
    off = {name: away(found[name], value) for name, value in expected.items()}
    assert {name: distance for name, distance in off.items() if not distance < ABOUT} == {}


def test_only_the_linear_model_diverges_beyond_two(model):
    """At c = 3 the wide network catapults, recovers, and ends at a smaller c."""
    begun = {
        "hidden": [512],
        "activation": "relu",
        "output": "linear",
        "seed": 1,
        "points": POINTS,
        "grid": GRID,
    }
    follow = """async ([start, steps]) => {
      const training = new (await window.model).Training(start), losses = [];
      while (training.time < steps) {
        training.step();
        losses.push(training.loss(training.outputs));
      }
      const { rate, linearDiverged, diverged } = training.state();
      return { losses, rate, linearDiverged, diverged };
    }"""
    beyond = model.evaluate(follow, [{**begun, "rate": 3}, 400])
    assert beyond["linearDiverged"]
    assert not beyond["diverged"]
    assert max(beyond["losses"]) > 10 * beyond["losses"][0]
    assert beyond["losses"][-1] < 0.01 * beyond["losses"][0]
    assert beyond["rate"] < 2


SECOND = """async ([start, steps]) => {
  const { Training, secondTask } = await window.model, training = new Training(start);
  while (training.time < steps) training.step();
  const { second, both, summed, error, points } = secondTask(training, start);
  const arrays = { second, both, summed };
  for (const name of Object.keys(arrays)) arrays[name] = Array.from(arrays[name]);
  return { ...arrays, error, points };
}"""


@pytest.mark.parametrize(("width", "output"), [(8, "linear"), (8, "swish"), (128, "linear")])
def test_second_task_adds_as_in_the_core(model, x64, width, output):
    hidden = (width, width)  # 128: a large matrix between the layers
    start = {
        "hidden": list(hidden),
        "activation": "tanh",
        "output": output,
        "seed": SEED,
        "rate": RATE,
        "points": POINTS,
        "grid": GRID,
    }
    found = model.evaluate(SECOND, [start, STEPS])
    net = ntk_core.FullyConnected(
        width=width, depth=2, activation="tanh", output=output, use_bias=False
    )
    w0 = drawn(hidden)
    grid = jnp.array(GRID)[:, None]

    def trained(points):
        x, y = jnp.asarray(points[:, :1]), jnp.asarray(points[:, 1:])
        kernel = ntk_core.empirical_ntk(net, w0, x)[:, :, 0, 0]
        rate = RATE * len(x) / float(np.linalg.eigvalsh(np.asarray(kernel))[-1])
        gradient = jax.grad(lambda w: 0.5 * jnp.mean((net.apply(w, x) - y) ** 2))
        w = w0
        for _ in range(STEPS):
            w = jax.tree.map(lambda each, slope: each - rate * slope, w, gradient(w))
        return w

    first = np.array(POINTS)
    second = np.column_stack([first[:, 0], np.roll(first[:, 1], -2)])  # a third of six points
    assert found["points"] == second.tolist()
    w1, w2 = trained(first), trained(second)
    merged = jax.tree.map(lambda a, b, c: a + b - c, w1, w2, w0)
    at_start, one, two, both = (net.apply(w, grid)[:, 0] for w in (w0, w1, w2, merged))
    assert away(found["second"], two) < ABOUT
    assert away(found["both"], both) < ABOUT
    assert away(found["summed"], one + two - at_start) < ABOUT
    expected = ntk_core.dynamics.addition_error(both - at_start, [one - at_start, two - at_start])
    assert found["error"] == pytest.approx(expected, rel=1e-3)
