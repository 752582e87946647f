"""A file chosen, read once, its choices tried at every change, kept when a person says so."""

import hashlib
from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.components.own_data import Brought, Standardize, brought, forget, remember, upload_limits
from dashboard.components.run_panel import ASK_S, foreseen_s, submit
from dashboard.views.own_data.upload_choices import read_choices, say
from dashboard.views.own_data.upload_preview import file_preview, samples, sizes
from dashboard.words.sentences import plain
from ntk_core.data.spec import DatasetSpec
from ntk_core.data.uploads import Candidate, Choices, Cleaned, clean_upload, forget_upload, keep_upload, parse_upload
from ntk_core.errors import InvalidInput
from ntk_core.runs import EXPERIMENTS
from ntk_core.settings.fields import differences
from ntk_core.settings.grammar import InvalidSpec

DEFAULT_POINTS = 60
MAX_POINTS = 10_000
STANDARDIZE: dict[Standardize, str] = {
    "standard": "mean 0, variance 1 in every entry",
    "unit-norm": "norm √d of every input",
    "raw": "as they are",
}


@dataclass
class _File:
    """A file that was read, and what came of the choices that were tried last."""

    name: str
    version: str
    candidate: Candidate | None
    sentence: InvalidInput | None
    tried: Choices | None = None
    cleaned: Cleaned | None = None
    wrong: InvalidInput | None = None

    def try_choices(self, choices: Choices) -> None:
        """Clean the data, unless these choices were tried before."""
        if self.candidate is None or choices == self.tried:
            return
        self.tried, self.cleaned, self.wrong = choices, None, None
        try:
            self.cleaned = clean_upload(self.candidate, choices, upload_limits())
        except InvalidInput as error:
            self.wrong = error


def bring_data(page: str) -> None:
    """Upload, preview, choices, what the network sees, and the ways on from there."""
    left, right = st.columns([2, 3], gap="large")
    with left:
        file = _chosen_file(page)
        if file.sentence is not None:
            say(file.sentence, file.sentence.field)
        if file.candidate is None:
            return
        key = f"{page}.{file.version}"
        # The sentence of a choice stands beside it, so the choices are read before they are tried, and again after.
        before = file.wrong
        choices = read_choices(key, file.candidate, upload_limits(), before)
        file.try_choices(choices)
        if str(before) != str(file.wrong):
            st.rerun()
        say(file.wrong, "file")
        points = _training_points(key, file.cleaned)
    with right:
        st.subheader("What the network will see", anchor=False)
        if file.cleaned is None:
            st.info("Nothing yet: a sentence beside a choice says what the data still need.")
        else:
            num_samples, standardize, seed = points
            sizes(file.cleaned, num_samples)
            _ways_on(page, file, num_samples, standardize, seed)
            samples(page, file.cleaned, standardize)
        st.subheader("The file", anchor=False, help=plain(file.name))
        file_preview(file.candidate)


def list_brought(page: str) -> None:
    """What this session has brought, each with a way to forget it."""
    if not brought():
        return
    st.subheader("Uploaded in this session", anchor=False)
    for data in brought():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(data.title), width="stretch")
            st.button("Forget", key=f"{page}.forget.{data.digest}", icon=":material/delete:",
                      on_click=_forget, args=(data.digest,), help="Delete the data from this server.")  # fmt: skip


def example_file() -> bytes:
    """A table to begin with: three spirals in the plane, 40 points each."""
    rng, lines = np.random.default_rng(0), ["x1,x2,radius,arm"]
    for arm in range(3):
        radius = np.linspace(0.3, 2, 40)
        angle = 2 * np.pi * arm / 3 + 1.4 * radius + 0.08 * rng.standard_normal(40)
        for r, a in zip(radius, angle, strict=True):
            lines.append(f"{r * np.cos(a):.4f},{r * np.sin(a):.4f},{r:.4f},{['first', 'second', 'third'][arm]}")
    return "\n".join(lines).encode()


def _chosen_file(page: str) -> _File:
    limits = upload_limits()
    upload = st.file_uploader(
        "A CSV file, an npz file, or a zip of image folders (a folder per class)",
        key=f"{page}.upload",
        max_upload_size=max(1, limits.max_bytes // 2**20),
        help=f"At most {limits.max_bytes // 2**20} MiB, {limits.max_rows:,} samples, {limits.max_classes} classes; "
        "kept on this server by a digest that only you know.",
    )
    if upload is None:
        st.caption("Until then, an example: three spirals.")
        st.download_button("The example as CSV", example_file, "spirals.csv", "text/csv", on_click="ignore")
    data, name = (upload.getvalue(), upload.name) if upload is not None else (example_file(), "spirals.csv")
    version = hashlib.sha256(data).hexdigest()[:16]
    known: _File | None = st.session_state.get(f"{page}.file")
    if known is None or known.version != version:
        candidate = sentence = None
        try:
            candidate = parse_upload(data, limits)
        except InvalidInput as error:
            sentence = error
        known = st.session_state[f"{page}.file"] = _File(name, version, candidate, sentence)
    return known


def _training_points(key: str, data: Cleaned | None) -> tuple[int, Standardize, int]:
    total = min(MAX_POINTS, len(data.x)) if data is not None else DEFAULT_POINTS
    with st.container(horizontal=True):
        num_samples = st.number_input(
            "Training points n", 2, max(2, total), min(DEFAULT_POINTS, total), 1, key=f"{key}.num_samples.{total}",
            help="A subset, balanced over the classes; the others can be test points.",
        )  # fmt: skip
        seed = st.number_input("Seed", 0, 2**31 - 1, 0, 1, key=f"{key}.seed", help="Of the subset.")
    standardize = st.selectbox(
        "Standardize", tuple(STANDARDIZE), format_func=STANDARDIZE.__getitem__, key=f"{key}.standardize",
        help="Of the training points; test points are treated alike.",
    )  # fmt: skip
    return int(num_samples), standardize, int(seed)


def _ways_on(page: str, file: _File, num_samples: int, standardize: Standardize, seed: int) -> None:
    assert file.cleaned is not None
    data = file.cleaned
    words = "Watch its kernel move" if data.class_names else "Train it beside its linear model"
    with st.container(horizontal=True):
        runs = st.button(words, key=f"{page}.run", type="primary", icon=":material/play_arrow:",
                         help="Keeps the data and runs a shallow network on them at several widths.")  # fmt: skip
        keeps = st.button("Use on other pages", key=f"{page}.keep", icon=":material/bookmark:",
                          help="Keeps the data; Dataset then has them as “your data” in this session.")  # fmt: skip
    if not (runs or keeps):
        return
    try:
        dataset = DatasetSpec(
            name="upload", digest=keep_upload(data), num_samples=num_samples, standardize=standardize, seed=seed
        )
        title = f"{file.name}, {' × '.join(map(str, data.input_shape))}"
        kept = Brought(dataset, title, len(data.x), len(data.class_names))
        remember(kept)
        other, spec = kept.first_look() if runs else ("", None)
    except (InvalidInput, InvalidSpec) as error:
        st.error(plain(f"{error}."))
        return
    if spec is None:
        st.success("Kept. Choose **your data** as the Dataset on any page.")
    elif foreseen_s(spec) > ASK_S:  # the page asks before it starts so long a run
        first = EXPERIMENTS[other].presets[0].spec
        st.switch_page(f"pages/{other}.py", query_params=differences(spec, first))
    elif submit(other, spec):
        st.switch_page(f"pages/{other}.py", query_params={"job": st.session_state[f"{other}.job"]})


def _forget(digest: str) -> None:
    forget_upload(digest)
    forget(digest)
