"""The figures of Hu, Xiao, Adlam & Pennington 2020."""

from __future__ import annotations

from typing import Any

from ntk_core.experiments.early_time.spec import EarlyDataSpec, EarlyNetworkSpec, EarlyTimeSpec, EarlyTrainingSpec
from ntk_core.runs import Preset

_PAPER = "Hu, Xiao, Adlam & Pennington 2020"
_CHOICES = (
    "The text that we could read states no numbers: n, d, m, the teacher, rates, steps and seeds are our choice, and "
    "so is when a network counts as departed (its test loss 5% below that of the linear model)."
)
_DEEP = EarlyNetworkSpec(depth=4, start="subtracted")
_CNN = EarlyNetworkSpec(kind="convnet", depth=4, start="subtracted")


def _images(name: str, num_samples: int, num_test: int, **settings: Any) -> EarlyDataSpec:
    return EarlyDataSpec(name=name, num_samples=num_samples, num_test=num_test, **settings)


def _sgd(max_steps: int, rate: float = 1.0) -> EarlyTrainingSpec:
    return EarlyTrainingSpec(batch_size=256, max_steps=max_steps, learning_rate=rate)


def _kernels(**settings: Any) -> EarlyTrainingSpec:
    return EarlyTrainingSpec(max_steps=0, **settings)


_CATS_AND_HORSES = _images("cifar2", 10_000, 2000)

PRESETS = (
    Preset(
        "hu-fig1",
        "A network and its linear model",
        "Early in training a two-layer network and its linear model have the same losses and the same output on every "
        "single input; the higher the dimension, the less they differ.",
        f"{_PAPER}, Fig. 1",
        _CHOICES + " m grows like d^(3/2), since the theorem needs it to grow faster than d.",
        EarlyTimeSpec(
            swept="input_dim",
            values=(25, 50, 100),
            width=128,
            num_seeds=2,
            dataset=EarlyDataSpec(num_samples=3000),
            training=EarlyTrainingSpec(max_steps=400),
        ),
        EarlyTimeSpec(
            swept="input_dim",
            values=(25, 50, 100, 200),
            width=256,
            num_seeds=3,
            dataset=EarlyDataSpec(num_samples=20_000, num_test=2000),
            training=EarlyTrainingSpec(max_steps=1000),
        ),
    ),
    Preset(
        "hu-fig2",
        "The norm is needed",
        "For a target that depends on the norm of the input, the linear model follows the network only with its norm "
        "feature; without it (the naive model) it cannot.",
        f"{_PAPER}, Fig. 2",
        _CHOICES,
        EarlyTimeSpec(
            values=(4096,),
            network=EarlyNetworkSpec(activations=("softplus",)),
            dataset=EarlyDataSpec(target="norm", num_samples=1000),
            training=EarlyTrainingSpec(max_steps=250, learning_rate=1.5),
        ),
        EarlyTimeSpec(
            values=(256, 1024, 4096),
            network=EarlyNetworkSpec(activations=("softplus",)),
            dataset=EarlyDataSpec(target="norm", num_samples=20_000, num_test=2000),
            training=EarlyTrainingSpec(max_steps=2000, learning_rate=1.5),
        ),
    ),
    Preset(
        "hu-fig3",
        "Cats and horses, fully connected",
        "Four hidden layers on images follow the linear model of the pixels until it is nearly as good as it can be; "
        "then the network gains outside the span of the inputs.",
        f"{_PAPER}, Fig. 3 (fully connected)",
        _CHOICES,
        EarlyTimeSpec(network=_DEEP, dataset=_CATS_AND_HORSES, values=(64, 256), training=_sgd(1500)),
        EarlyTimeSpec(network=_DEEP, dataset=_CATS_AND_HORSES, values=(512,), training=_sgd(5000)),
    ),
    Preset(
        "hu-fig3-cnn",
        "Cats and horses, convolutions",
        "Four convolutions with circular padding follow the linear model of the pixels too, for a shorter time.",
        f"{_PAPER}, Fig. 3 (CNN)",
        _CHOICES,
        EarlyTimeSpec(network=_CNN, dataset=_CATS_AND_HORSES, values=(16,), training=_sgd(300)),
        EarlyTimeSpec(network=_CNN, dataset=_CATS_AND_HORSES, values=(64,), training=_sgd(2000)),
    ),
    Preset(
        "hu-fig4",
        "Two digits",
        "On MNIST, at full size, the network follows its linear model early in training too.",
        f"{_PAPER}, Fig. 4 (MNIST)",
        _CHOICES + " The classes are 4 and 9, 600 images of each.",
        EarlyTimeSpec(
            network=_DEEP, dataset=_images("mnist", 1200, 400, classes=(4, 9)), values=(256,), training=_sgd(400, 0.2)
        ),
        EarlyTimeSpec(
            network=_DEEP, dataset=_images("mnist", 1200, 400, classes=(4, 9)), values=(512,), training=_sgd(2000, 0.2)
        ),
    ),
    Preset(
        "hu-fig4-fashion",
        "Two kinds of clothing",
        "The same for two classes of Fashion-MNIST.",
        f"{_PAPER}, after Fig. 4",
        _CHOICES + " The data set and the classes (pullovers and coats) are our choice too.",
        EarlyTimeSpec(
            network=_DEEP,
            dataset=_images("fashion-mnist", 1200, 400, classes=(2, 4)),
            values=(256,),
            training=_sgd(400, 0.2),
        ),
        EarlyTimeSpec(
            network=_DEEP,
            dataset=_images("fashion-mnist", 1200, 400, classes=(2, 4)),
            values=(512,),
            training=_sgd(2000, 0.2),
        ),
    ),
    Preset(
        "hu-fig4-cifar",
        "Cats and horses at full size",
        "At 32 × 32 pixels the fully connected network follows the linear model of the pixels too.",
        f"{_PAPER}, Fig. 4 (CIFAR-10)",
        _CHOICES + " 500 images of each class; the paper has 5,000.",
        EarlyTimeSpec(
            network=_DEEP, dataset=_images("cifar2", 1000, 200, resolution=32), values=(256,), training=_sgd(300)
        ),
        EarlyTimeSpec(
            network=_DEEP, dataset=_images("cifar2", 1000, 200, resolution=32), values=(512,), training=_sgd(2000)
        ),
    ),
    Preset(
        "hu-fig5",
        "Spectral norm, not Frobenius norm",
        "The distance of the first layer's kernel to that of the linear model falls faster than 1/d in spectral norm, "
        "slower in Frobenius norm: the second would prove nothing.",
        f"{_PAPER}, Fig. 5 and Prop. 3.4",
        _CHOICES,
        EarlyTimeSpec(
            swept="input_dim",
            values=(10, 20, 40, 80),
            width=6000,
            width_exponent=0,
            network=EarlyNetworkSpec(activations=("relu",)),
            dataset=EarlyDataSpec(num_samples=3000),
            training=_kernels(rate_output=0),
            kernel_samples=3000,
        ),
        EarlyTimeSpec(
            swept="input_dim",
            values=(10, 20, 40, 80, 160),
            width=20_000,
            width_exponent=0,
            network=EarlyNetworkSpec(activations=("relu",)),
            dataset=EarlyDataSpec(num_samples=10_000),
            training=_kernels(rate_output=0),
            kernel_samples=10_000,
        ),
    ),
    Preset(
        "hu-prop41",
        "One-dimensional convolution",
        "On the hypercube the kernel of an infinitely wide convolution approaches the scaled kernel of the data, "
        "2ζ²XXᵀ/d, as the dimension and the filter grow.",
        f"{_PAPER}, Prop. 4.1",
        _CHOICES,
        EarlyTimeSpec(
            swept="input_dim",
            values=(8, 16, 32, 64),
            network=EarlyNetworkSpec(kind="convnet-1d"),
            dataset=EarlyDataSpec(name="rademacher", num_samples=400),
            training=_kernels(),
            kernel_samples=400,
            infinite_width=True,
        ),
        EarlyTimeSpec(
            swept="input_dim",
            values=(16, 32, 64, 128, 256),
            network=EarlyNetworkSpec(kind="convnet-1d"),
            dataset=EarlyDataSpec(name="rademacher", num_samples=2000),
            training=_kernels(),
            kernel_samples=2000,
            infinite_width=True,
        ),
    ),
    Preset(
        "hu-departure",
        "When networks depart",
        "erf and tanh, akin to the teacher, become better than the linear model, the sooner the wider they are; "
        "softplus and ReLU do not in this time.",
        f"after {_PAPER}, §3.4",
        _CHOICES + " The whole experiment is our choice.",
        EarlyTimeSpec(
            values=(64, 256, 1024),
            network=EarlyNetworkSpec(activations=("erf", "tanh", "softplus", "relu")),
            dataset=EarlyDataSpec(input_dim=25, num_samples=2000),
            training=EarlyTrainingSpec(max_steps=300, learning_rate=2.0),
        ),
        EarlyTimeSpec(
            values=(64, 256, 1024, 4096),
            network=EarlyNetworkSpec(activations=("erf", "tanh", "softplus", "relu")),
            dataset=EarlyDataSpec(input_dim=25, num_samples=20_000),
            training=EarlyTrainingSpec(max_steps=2000, learning_rate=2.0),
            num_seeds=3,
        ),
    ),
)
