"""Data sets of the experiment.

Random inputs with targets computed from them, image pairs with labels ±1.
"""

import math
from dataclasses import replace
from typing import get_args

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from linearity_lab.data import Dataset, load_dataset
from linearity_lab.experiments.early_time.spec import IMAGES, TargetName
from ntk_core.early_time import TRAIN_STREAM, draw_inputs, standardized_images
from ntk_core.errors import check_choice
from ntk_core.networks.architectures import activation_function
from ntk_core.streams import stream

TARGETS = get_args(TargetName)

# One independent stream for each purpose.
_TRAIN = TRAIN_STREAM
_TEST, _TARGET, _NOISE = range(1, 4)


def synthetic_data(
    entries: str,
    spectrum: NDArray,
    target: str,
    *,
    num_samples: int,
    num_test: int,
    seed: int,
    teacher_width: int = 5,
    noise: float = 0.0,
) -> Dataset:
    """Draw training and test samples of one input distribution and one target, by ``seed``.

    Targets of x, with u, w_j ~ N(0, I) and a_j ~ N(0, 1), drawn once:

    - ``"teacher"``: a two-layer erf network k^(-1/2) Σ_j a_j φ(w_j·x/√d), k = ``teacher_width``,
    - ``"norm"``: ‖x‖/√d,
    - ``"sign"``: sign(u·x),
    - ``"linear"``: u·x/√d + ``noise`` · N(0, 1).

    Source: Hu, Xiao, Adlam & Pennington 2020, §3.4 (teacher and norm); the others are our choice.
    """
    check_choice("target", target, TARGETS)
    arrays: dict[str, NDArray] = {}
    for suffix, n, split in (("", num_samples, _TRAIN), ("_test", num_test, _TEST)):
        x = draw_inputs(entries, spectrum, n, seed, split)
        y = _target_of(target, x, seed, teacher_width)
        if target == "linear":
            y = y + noise * stream(seed, _NOISE, split).standard_normal(n)
        arrays |= {
            "x" + suffix: x,
            "y" + suffix: y[:, None],
            "labels" + suffix: np.zeros(0, np.int64),
        }
    return Dataset(
        name=f"{entries}, {target}",
        class_names=(),
        provenance=_provenance(entries, target),
        **arrays,
    )


def image_pair(name: str, classes: tuple[int, ...] | None = None, **options: object) -> Dataset:
    """Load two image classes with targets −1 and +1, each image scaled to mean 0 and variance 1.

    ``options`` are those of ``load_dataset`` (``num_samples``, ``num_test``,
    ``resolution``, ``seed``).

    Source: Hu, Xiao, Adlam & Pennington 2020, §4.2 and App. A.
    """
    check_choice("name", name, IMAGES)
    if classes is not None:
        options["classes"] = list(classes)
    data = load_dataset(name, targets="plus-minus", **options)
    return replace(
        data,
        x=standardized_images(data.x),
        x_test=standardized_images(data.x_test),
        provenance=data.provenance
        + " Each image is scaled to mean 0 and variance 1, as in Hu et al. (2020), App. A.",
    )


def _target_of(target: str, x: NDArray, seed: int, teacher_width: int) -> NDArray[np.float64]:
    d = x.shape[1]
    generator = stream(seed, _TARGET)
    if target == "norm":
        return np.linalg.norm(x.astype(np.float64), axis=1) / math.sqrt(d)
    if target == "teacher":
        outer = generator.standard_normal(teacher_width)
        inner = generator.standard_normal((teacher_width, d), dtype=np.float32)
        hidden = activation_function("erf")(jnp.asarray(x @ inner.T / np.float32(math.sqrt(d))))
        return np.asarray(hidden, np.float64) @ outer / math.sqrt(teacher_width)
    direction = generator.standard_normal(d, dtype=np.float32)
    along = (x @ direction).astype(np.float64) / math.sqrt(d)
    return np.sign(along) if target == "sign" else along


def _provenance(entries: str, target: str) -> str:
    law = {"gaussian": "N(0, 1)", "rademacher": "±1", "uniform": "uniform on [−√3, √3]"}[entries]
    return (
        f"Synthetic inputs x = Σ^(1/2) z, independent entries of z {law}, and target '{target}', "
        "drawn from the seed. The laws are those of Hu, Xiao, Adlam & Pennington (2020), "
        "Assumption 3.1. No licence applies."
    )
