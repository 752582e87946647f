"""Data uploaded in this browser session, offered on other pages, with a quick first run."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from linearity_lab.dashboard import session
from linearity_lab.dashboard.jobs.profile import profile
from linearity_lab.data import load_dataset
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.data.uploads import DEFAULT_LIMITS, Keeper, Limits
from linearity_lab.experiments.dynamics.point import DynamicsSpec
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import Spec
from linearity_lab.settings.training import TrainingSpec

Standardize = Literal["raw", "unit-norm", "standard", "centered"]
_KEY = "own_data.uploaded"
MAX_UPLOADS = 32
MAX_TEST = 20
PREDICTED_POINTS = 200
PREDICTED_STEPS = 1_000


@dataclass(frozen=True)
class Uploaded:
    """Uploaded data as this session knows them."""

    # Settings for any experiment, with the chosen training points, scaling and seed.
    dataset: DatasetSpec
    title: str  # file name and shape of an input; visible only in this session
    total: int
    num_classes: int  # 0 for regression

    @property
    def digest(self) -> str:
        """Digest of the stored data."""
        return self.dataset.digest or ""

    @property
    def num_test(self) -> int:
        """Number of samples left as test points, at most MAX_TEST."""
        return min(MAX_TEST, self.total - self.dataset.num_samples)

    def first_look(self) -> tuple[str, Spec]:
        """Return the (page, spec) that shows these data first.

        With classes it is the kernel change of a shallow network, else true against linear
        training.

        Raises:
            InvalidSpec, InvalidInput: the data do not suit the experiment.
        """
        if self.num_classes:
            training = TrainingSpec(loss_threshold=reachable_loss(self.dataset))
            spec: Spec = KernelChangeSpec(
                dataset=self.dataset,
                outputs=("linear", "softmax"),
                widths=(30, 100, 300, 1000),
                num_seeds=3,
                training=training,
            )
            return "kernel_change", spec
        dataset = self.dataset
        num_test = self.num_test
        if not num_test:  # if all points were for training, a fifth become test points
            num_test = max(1, min(MAX_TEST, self.total // 5))
            dataset = dataset.model_copy(update={"num_samples": self.total - num_test})
        # Only a linear output reaches every number.
        return "dynamics", DynamicsSpec(
            dataset=dataset,
            outputs=("linear",),
            widths=(30, 100, 300),
            loss="square",
            num_test=num_test,
            training=TrainingSpec(loss_threshold=reachable_loss(dataset), num_records=20),
        )


def reachable_loss(dataset: DatasetSpec) -> float:
    """Return a loss threshold that training on these data reaches.

    It is 1.2 times the loss that kernel training predicts after 1,000 steps on at most 200 points,
    between 0.01 (which separated data reach) and half of the initial loss. The loss is
    cross-entropy for classes and square otherwise. Kernel and initial outputs are those of a wide
    ReLU network, with the automatic learning rate.
    """
    data = load_dataset(dataset.name, **dataset.options())
    y = data.y[:PREDICTED_POINTS]
    x = data.x[: len(y)].reshape(len(y), -1)
    is_classes = bool(data.class_names)
    kernel, covariance = wide_relu_kernels(x)
    jitter = 1e-5 * np.trace(covariance) / len(y) * np.eye(len(y))
    f = np.linalg.cholesky(covariance + jitter) @ np.random.default_rng(0).standard_normal(y.shape)
    curvature = 0.5 if is_classes else 1.0
    step = 0.5 / (curvature * np.linalg.eigvalsh(kernel)[-1])  # the automatic rate, over n

    def loss() -> float:
        each = -y * log_softmax(f, axis=1) if is_classes else (f - y) ** 2 / 2
        return float(each.sum(axis=1).mean())

    first = loss()
    for _ in range(PREDICTED_STEPS):
        f = f - step * kernel @ ((softmax(f, axis=1) if is_classes else f) - y)
    return float(f"{min(max(0.01, 1.2 * loss()), first / 2):.2g}")


def wide_relu_kernels(x: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return tangent kernel and output covariance of an infinitely wide ReLU layer, without JAX.

    Source: Cho & Saul 2009, arc-cosine kernels of degree 0 and 1.
    """
    x = np.asarray(x, np.float64)
    gram = x @ x.T / x.shape[1] + 1.0  # of the inputs and their bias
    lengths = np.sqrt(np.outer(np.diag(gram), np.diag(gram)))
    cosine = np.clip(gram / lengths, -1.0, 1.0)
    both_active = (np.pi - np.arccos(cosine)) / (2 * np.pi)
    covariance = lengths * (np.sqrt(1 - cosine**2) / (2 * np.pi) + both_active * cosine)
    return covariance + gram * both_active, covariance


def uploaded() -> tuple[Uploaded, ...]:
    """Return the uploads of this session, most recent first."""
    return tuple(reversed(_known().values()))


def remember(data: Uploaded) -> None:
    """Offer these data on the other pages of this session."""
    known = _known()
    known.pop(data.digest, None)
    known[data.digest] = data
    for digest in list(known)[:-MAX_UPLOADS]:
        del known[digest]


def forget(digest: str) -> None:
    """Stop offering these data."""
    _known().pop(digest, None)


def upload_chooser(label: str, key: str, help: str) -> None:
    """Show a menu of this session's uploads and of data in the link."""
    given = st.session_state.get(key) or ""
    titles = {data.digest: data.title for data in uploaded()}
    if given not in titles:
        titles = {
            given: f"from the link ({given[:8]}…)" if given else "none uploaded yet",
            **titles,
        }
    st.selectbox(label, list(titles), format_func=titles.__getitem__, key=key, help=help)
    st.page_link("pages/own_data.py", label="Upload data", icon=":material/upload_file:")


def upload_limits() -> Limits:
    """Limits of one upload on this server.

    Three times its bytes when unpacked, its bytes as float32.
    """
    most = profile().max_upload_bytes
    return replace(
        DEFAULT_LIMITS,
        max_bytes=most,
        max_unpacked_bytes=min(3 * most, DEFAULT_LIMITS.max_unpacked_bytes),
        max_values=min(most // 4, DEFAULT_LIMITS.max_values),
        max_all_pixels=min(4 * most, DEFAULT_LIMITS.max_all_pixels),
    )


def keeper() -> Keeper:
    """This session and its quota on disk."""
    chosen = profile()
    if not chosen.is_shared:
        return Keeper(session.viewer())
    return Keeper(session.viewer(), max_bytes=4 * chosen.max_upload_bytes)


def _known() -> dict[str, Uploaded]:
    return st.session_state.setdefault(_KEY, {})
