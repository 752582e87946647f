"""Uploaded data: a table, arrays or images, and the kernel change of a network that learns them."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from linearity_lab.dashboard.jobs import shared_jobs
from linearity_lab.dashboard.jobs.uploads import read_uploads, show_file
from linearity_lab.dashboard.own_data import (
    Standardize,
    Uploaded,
    forget,
    keeper,
    remember,
    upload_limits,
    uploaded,
)
from linearity_lab.dashboard.pages.own_data.upload_choices import (
    MAX_SENTENCE,
    file_preview,
    read_choices,
    samples,
    show_error,
    sizes,
)
from linearity_lab.dashboard.run_panel import ASK_S, foreseen, submit
from linearity_lab.data.spec import DatasetSpec
from linearity_lab.data.uploads import (
    EXAMPLE,
    Candidate,
    Choices,
    Cleaned,
    MissingValues,
    Table,
    described,
    forget_upload,
    keep_upload,
)
from linearity_lab.runs import EXPERIMENTS
from linearity_lab.settings.grammar import InvalidSpec, differences
from linearity_lab.words.markdown import plain
from linearity_lab.words.pages import SHOWS, prose
from ntk_core.errors import InvalidInput
from ntk_core.markup import shortened

PAGE = "own_data"
HEADERS: dict[str, bool | None] = {"Automatic": None, "Column names": True, "A sample": False}
FIRST_ROWS = tuple(HEADERS)


Read = Callable[[], bytes]
DEFAULT_POINTS = 60
MAX_POINTS = 10_000
SEEN = "What the network will see"
FORGET = "Remove the data from this session. The file is deleted when no other session uses it."
STANDARDIZE: dict[Standardize, str] = {
    "standard": "mean 0, variance 1 in every entry",
    "centered": "mean 0 in every entry, then norm √d",
    "unit-norm": "norm √d of every input",
    "raw": "as they are",
}


@dataclass
class _File:
    """An uploaded file with its errors and those of its last choices.

    ``jobs.uploads`` caches its contents.
    """

    name: str
    source: str
    version: str
    header: bool | None = None
    sentence: InvalidInput | None = None
    tried: Choices | None = None
    wrong: InvalidInput | None = None

    def candidate(self, read: Read) -> Candidate | None:
        """Parse the bytes that ``read`` returns.

        None if they cannot be used, for the reason in ``sentence``.
        """
        if self.sentence is None:
            try:
                return read_uploads().candidate(self.version, read, upload_limits(), self.header)
            except InvalidInput as error:
                self.sentence = error.with_traceback(None)  # its frames hold the file
        return None

    def cleaned(self, choices: Choices, read: Read) -> Cleaned | None:
        """Apply the choices; None if they cannot be used, for the reasons in ``wrong``."""
        if choices == self.tried and self.wrong is not None:
            return None
        self.tried = choices
        self.wrong = None
        try:
            return read_uploads().cleaned(self.version, read, choices, upload_limits(), self.header)
        except InvalidInput as error:
            self.wrong = error.with_traceback(None)
            return None

    def read_first_row_as(self, header: bool | None) -> None:
        """Parse the file again if the choice of its first row has changed."""
        if header is not self.header:
            self.header = header
            self.sentence = None
            self.tried = None
            self.wrong = None


def show() -> None:
    """Show upload, preview, choices, network inputs, next steps, and earlier uploads."""
    st.title("What about your own data?", anchor=False)
    st.markdown(prose(PAGE, SHOWS))
    _upload_data()
    if not uploaded():
        return
    st.subheader("Uploaded in this session", anchor=False)
    for data in uploaded():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(plain(data.title), width="stretch")
            st.button(
                "Forget",
                key=f"{PAGE}.forget.{data.digest}",
                icon=":material/delete:",
                on_click=_forget,
                args=(data.digest,),
                help=FORGET,
            )


def _upload_data() -> None:
    """Show a file, what is chosen from it, and what the network will see of it."""
    # look.css puts the second one beside the others, where they fit.
    with st.container(key=f"{PAGE}.places"):
        source = st.container(key=f"{PAGE}.source")
        seen = st.container(key=f"{PAGE}.seen")
        choosing = st.container(key=f"{PAGE}.choosing")
    with source:
        file, read, key, candidate = _parsed_file()
    if candidate is None:
        with seen:
            _say_nothing_is_seen("Correct the file or choose another one.")
        return
    with choosing:
        cleaned, num_samples, standardize, seed = _chosen_data(key, file, read, candidate)
    with seen:
        if cleaned is None:
            _say_nothing_is_seen("The message beside a choice explains what is missing.")
            return
        st.subheader(SEEN, anchor=False)
        above = st.container(horizontal=True)
        with above:
            _ways_on(file.name, cleaned, num_samples, standardize, seed)
        samples(PAGE, cleaned, standardize, above)
        sizes(cleaned, num_samples)


def _say_nothing_is_seen(why: str) -> None:
    st.subheader(SEEN, anchor=False)
    st.info(f"No preview yet. {why}")


def _parsed_file() -> tuple[_File, Read, str, Candidate | None]:
    """Show the choice of a file and of its first row.

    Return it with the function that reads it, the key of its widgets, and what was parsed; None
    if it cannot be used.
    """
    file, read = _chosen_file()
    key = f"{PAGE}.{file.version[:16]}"
    first_row = st.session_state.get(f"{key}.header") or FIRST_ROWS[0]
    file.read_first_row_as(HEADERS[first_row])
    candidate = file.candidate(read)
    is_undecided = file.sentence is not None and file.sentence.field == "header"
    if isinstance(candidate, Table) or is_undecided:
        st.segmented_control(
            "First row",
            FIRST_ROWS,
            default=FIRST_ROWS[0],
            required=True,
            key=f"{key}.header",
            help="Automatic compares it with the rows below.",
        )
    if file.sentence is not None:
        show_error(file.sentence, file.sentence.field)
    return file, read, f"{key}.{first_row}", candidate


def _chosen_data(
    key: str, file: _File, read: Read, candidate: Candidate
) -> tuple[Cleaned | None, int, Standardize, int]:
    """Show the choices of a parsed file above its preview.

    Return the data, None if a choice cannot be applied, with the number of training points, the
    standardization and the seed.
    """
    # The error of a choice is shown beside it, so choices are read before and after they are
    # applied.
    before = file.wrong
    few = st.container()
    is_asked = isinstance(before, MissingValues) or (
        before is not None and before.field == "classes"
    )
    more = st.expander("More", expanded=is_asked)
    st.subheader("The file", anchor=False, help=plain(file.name))
    about = st.container()
    file_preview(candidate)
    with few:
        choices = read_choices(key, candidate, upload_limits(), before, more)
        with about:
            sentences = described(candidate, choices, max_classes=upload_limits().max_classes)
            st.caption(plain(" ".join(shortened(each, MAX_SENTENCE) for each in sentences)))
        cleaned = file.cleaned(choices, read)
        if str(before) != str(file.wrong):
            st.rerun()
        show_error(file.wrong, "file")
        return cleaned, *_training_points(key, cleaned, more)


def example_file() -> bytes:
    """Return the shipped example table: three spirals in the plane, 40 points each."""
    return EXAMPLE.read_bytes()


def _chosen_file() -> tuple[_File, Read]:
    limits = upload_limits()
    upload = st.file_uploader(
        "A CSV file, an npz file, or a zip of image folders (a folder per class)",
        key=f"{PAGE}.upload",
        max_upload_size=max(1, limits.max_bytes // 2**20),
        help=f"At most {limits.max_bytes // 2**20} MiB, {limits.max_rows:,} samples, "
        f"{limits.max_classes} classes; stored on this server under a digest that only you know.",
    )
    if upload is None:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption("Until then, an example: three spirals.", width="content")
            st.download_button(
                "The example as CSV", example_file, "spirals.csv", "text/csv", on_click="ignore"
            )
    name, source = (
        (upload.name, upload.file_id) if upload is not None else ("spirals.csv", "example")
    )
    read: Read = example_file
    if upload is not None:
        # Streamlit returns a copy of the file; that in the session's state shares its
        # bytes with the server.
        shared = st.session_state[f"{PAGE}.upload"]
        read = show_file(upload.file_id, shared, upload.size)
    known: _File | None = st.session_state.get(f"{PAGE}.file")
    if known is None or known.source != source:
        data = upload.getvalue() if upload is not None else example_file()
        version = hashlib.sha256(data).hexdigest()
        known = st.session_state[f"{PAGE}.file"] = _File(name, source, version)
    return known, read


def _training_points(
    key: str, data: Cleaned | None, more: DeltaGenerator
) -> tuple[int, Standardize, int]:
    total = min(MAX_POINTS, len(data.x)) if data is not None else DEFAULT_POINTS
    num_samples = st.number_input(
        "Training points n",
        2,
        max(2, total),
        min(DEFAULT_POINTS, total),
        1,
        key=f"{key}.num_samples.{total}",
        help="A subset, balanced over the classes; the others can be test points.",
    )
    with more:
        seed = st.number_input("Seed", 0, 2**31 - 1, 0, 1, key=f"{key}.seed", help="Of the subset.")
        standardize = st.selectbox(
            "Standardize",
            tuple(STANDARDIZE),
            format_func=STANDARDIZE.__getitem__,
            key=f"{key}.standardize",
            help="Of the training points; test points are treated alike.",
        )
    return int(num_samples), standardize, int(seed)


def _ways_on(
    name: str, data: Cleaned, num_samples: int, standardize: Standardize, seed: int
) -> None:
    words = "Watch its kernel move" if data.class_names else "Train it with its linear model"
    runs = st.button(
        words,
        key=f"{PAGE}.run",
        type="primary",
        icon=":material/play_arrow:",
        help="Save the data and run a shallow network on them at several widths.",
    )
    keeps = st.button(
        "Use on other pages",
        key=f"{PAGE}.keep",
        icon=":material/bookmark:",
        help="Save the data; they appear as “your data” under Dataset in this session.",
    )
    if not (runs or keeps):
        return
    try:
        digest = keep_upload(data, keeper(), needed=shared_jobs().needed_uploads())
        dataset = DatasetSpec(
            name="upload",
            digest=digest,
            num_samples=num_samples,
            standardize=standardize,
            seed=seed,
        )
        title = f"{name}, {' × '.join(map(str, data.input_shape))}"
        kept = Uploaded(dataset, title, len(data.x), len(data.class_names))
        remember(kept)
        other, spec = kept.first_look() if runs else ("", None)
    except (InvalidInput, InvalidSpec) as error:
        st.error(plain(f"{error}."))
        return
    if spec is None:
        st.success("Saved. Choose **your data** as the Dataset on any page.")
    elif foreseen(spec)[0] > ASK_S:  # the page asks for confirmation of so long a run
        first = EXPERIMENTS[other].presets[0].spec
        st.switch_page(f"pages/{other}.py", query_params=differences(spec, first))
    elif submit(other, spec):
        st.switch_page(f"pages/{other}.py", query_params={"job": st.session_state[f"{other}.job"]})


def _forget(digest: str) -> None:
    forget_upload(digest, keeper(), needed=shared_jobs().needed_uploads())
    forget(digest)
