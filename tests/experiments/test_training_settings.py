"""Methods and losses of pages that train: settings, groups, targets and refusals. None computes."""

import numpy as np
import pytest
from pydantic import ValidationError

from linearity_lab.experiments import (
    DynamicsSpec,
    GeneralizationSpec,
    KernelChangeSpec,
    LazySpec,
    LearningRateSpec,
    TrainingSpec,
)
from linearity_lab.experiments.kernel_change.spec import training_groups
from linearity_lab.settings.grammar import InvalidSpec, with_settings
from linearity_lab.settings.part import reduced
from ntk_core.dynamics.choices import LOSSES


def test_default_method_and_loss_are_in_no_digest():
    for kind in (KernelChangeSpec, LazySpec, GeneralizationSpec):
        spec = with_settings(kind(), {"training.max_steps": 50})
        named = set(reduced(spec)["training"])
        assert "max_steps" in named
        assert not named & {"optimizer", "loss", "momentum", "batch_size"}


def test_plain_training_settings_fit_every_experiment():
    plain = TrainingSpec(max_steps=50)
    lazy = LazySpec(training=plain).training
    assert (lazy.max_steps, lazy.loss) == (50, "square")
    assert DynamicsSpec(training=plain).training.max_steps == 50


@pytest.mark.parametrize(
    ("loss", "shared"), [("usual", True), ("cross-entropy", True), ("square", False)]
)
def test_cross_entropy_trains_linear_and_softmax_together(loss, shared):
    groups = training_groups(("linear", "softmax", "swish"), loss)
    assert groups[0].observed == (("linear", "softmax") if shared else ("linear",))
    assert len(groups) == (2 if shared else 3)


def test_targets_of_one_output_are_signs_already():
    signs = np.array([[1.0], [-1.0]])
    one_hot = np.array([[1.0, 0.0], [0.0, 1.0]])
    np.testing.assert_array_equal(LOSSES["logistic"].targets_of(signs), signs)
    np.testing.assert_array_equal(LOSSES["logistic"].targets_of(one_hot), 2 * one_hot - 1)


@pytest.mark.parametrize(
    ("field", "kind", "given"),
    [
        ("training.optimizer", GeneralizationSpec, {"training.optimizer": "adam"}),
        ("training.loss", GeneralizationSpec, {"training.loss": "logistic"}),
        (
            "training.batch_size",
            LazySpec,
            {"training.optimizer": "sgd", "training.batch_size": 5000},
        ),
        ("loss", LearningRateSpec, {"loss": "cross-entropy"}),
        (
            "training.loss",
            KernelChangeSpec,
            {"dataset.name": "sine", "outputs": ("linear",), "training.loss": "logistic"},
        ),
    ],
)
def test_methods_and_losses_without_sense_are_refused(field, kind, given):
    with pytest.raises(InvalidSpec) as refused:
        with_settings(kind(), given)
    assert [problem.field for problem in refused.value.problems] == [field]


def test_dynamics_refuses_a_second_method():
    with pytest.raises(ValidationError, match=r"training\.optimizer"):
        DynamicsSpec(training=TrainingSpec(optimizer="adam"))
