"""Seeds: the same network in every experiment, an independent one at every width."""

import jax
import numpy as np
import pytest

from ntk_core.experiments.dynamics import DynamicsSpec
from ntk_core.experiments.kernel_change.spec import KernelChangeSpec
from ntk_core.experiments.optimization import OptimizationSpec
from ntk_core.networks.architectures import FullyConnected
from ntk_core.networks.build import initial_key
from ntk_core.runs import run
from ntk_core.settings.grammar import with_settings

WIDTHS = (12, 30)
SMALL = {
    "widths": list(WIDTHS),
    "num_seeds": 2,
    "outputs": ["swish"],
    "dataset.num_samples": 6,
    "dataset.num_classes": 2,
    "dataset.input_dim": 4,
    "dataset.noise": 0.5,
    "training.learning_rate": 1e-3,
    "training.max_steps": 2,
    "training.num_records": 2,
}


def first_losses(spec, of_run):
    *_, ended = run(spec)
    return {(point.width, each.seed): of_run(each) for point in ended.result.points for each in point.runs}


@pytest.mark.slow
def test_seed_and_width_give_one_network_in_all_experiments():
    shared = {"kind": "fully-connected", "depth": 1, "activation": "tanh", "use_bias": False}
    settings = SMALL | {f"architecture.{name}": value for name, value in shared.items()}
    found = [
        first_losses(with_settings(spec, settings | more), of_run)
        for spec, more, of_run in (
            (KernelChangeSpec(), {}, lambda each: each.loss[0]),
            (OptimizationSpec(), {"rates": [1]}, lambda each: each.loss[0]),
            (DynamicsSpec(), {"methods": ["gradient-descent"]}, lambda each: each.network.loss[0]),
        )
    ]
    assert set(found[0]) == {(width, seed) for width in WIDTHS for seed in (0, 1)}
    assert len(set(found[0].values())) == 4
    assert all(each == pytest.approx(found[0], rel=1e-5) for each in found)


def largest_weights(key_of):
    """‖v‖_∞ at two neighboring widths with 400 seeds each."""

    def largest(width):
        net = FullyConnected(width=width, use_bias=False)
        return jax.vmap(lambda seed: abs(net.init(key_of(seed, width), (3,))["output"]["weight"]).max())

    return [np.asarray(largest(width)(np.arange(400))) for width in (100, 130)]


def test_draws_at_neighboring_widths_are_independent():
    narrow, wide = largest_weights(initial_key)
    # Standard error 1/√400 = 0.05; with the seed's key alone, the wide draw begins with the narrow one.
    assert abs(np.corrcoef(narrow, wide)[0, 1]) < 0.2
    narrow, wide = largest_weights(lambda seed, width: jax.random.key(seed))
    assert np.corrcoef(narrow, wide)[0, 1] > 0.5
