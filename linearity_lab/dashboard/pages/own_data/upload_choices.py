"""Preview of an uploaded file, and the choices that turn it into data."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from linearity_lab.charts.axes import readable
from linearity_lab.dashboard.chart import Figures, show_chart
from linearity_lab.dashboard.export_menu import export_menu
from linearity_lab.dashboard.pages.own_data import figures
from linearity_lab.data.uploads import (
    BACKGROUNDS,
    TASKS,
    Arrays,
    Candidate,
    Choices,
    Cleaned,
    FileColumn,
    ImageFolders,
    Limits,
    Table,
    Task,
    suggested_choices,
)
from linearity_lab.words.markdown import plain
from ntk_core.errors import InvalidInput
from ntk_core.markup import shortened

MOST_PREVIEWED = 50  # columns; thousands take seconds to draw
MAX_SENTENCE = 400  # letters; names of classes may be long
TASK_TITLES = {"classes": "Classes, one-hot", "regression": "Numbers (regression)"}


def read_choices(
    page: str,
    candidate: Candidate,
    limits: Limits,
    sentence: InvalidInput | None,
    more: DeltaGenerator,
) -> Choices:
    """Show the choices for this type of file, initially with suggestions, rare ones in ``more``.

    The prefix ``page`` of the keys has the version of the file, so that another file
    starts with fresh choices.
    """
    first = suggested_choices(candidate, max_classes=limits.max_classes, max_side=limits.max_side)
    if isinstance(candidate, Table):
        return _of_table(page, candidate, first, sentence, more)
    if isinstance(candidate, Arrays):
        return _of_arrays(page, candidate, first, sentence)
    return _of_images(page, candidate, first, limits, sentence, more)


def show_error(sentence: InvalidInput | None, *fields: str) -> None:
    """Show the error if it concerns one of these fields."""
    if sentence is not None and sentence.field in fields:
        st.error(plain(f"{sentence}."))


def _of_table(
    page: str, table: Table, first: Choices, sentence: InvalidInput | None, more: DeltaGenerator
) -> Choices:
    titles = {name: name for name in table.names}
    target, task, scale = _target(
        page, titles, first, sentence, "The column that the network learns."
    )
    columns = [name for name in table.names if name != target]
    features = st.multiselect(
        "Features x",
        columns,
        default=[name for name in first.features if name != target],
        key=f"{page}.features",
        help="The input columns: numbers, not constant.",
    )
    show_error(sentence, "features")
    (column,) = [column for column in table.columns if column.name == target]
    with more:
        classes = (
            _classes(page, column.texts, sentence)
            if task == "classes" and column.can_be_classes
            else ()
        )
        drop = st.toggle(
            "Drop rows with missing values",
            key=f"{page}.drop_missing",
            help="Rows with a missing value in a chosen column; otherwise they are refused.",
        )
    return Choices(tuple(features), target, task, classes, drop, scale)


def _of_arrays(
    page: str, candidate: Arrays, first: Choices, sentence: InvalidInput | None
) -> Choices:
    titles = {name: f"{name} {array.shape}" for name, array in candidate.arrays.items()}
    inputs = st.selectbox(
        "Inputs x",
        list(titles),
        index=list(titles).index(first.features[0]) if first.features else 0,
        format_func=titles.__getitem__,
        key=f"{page}.features",
        help="(n, features), tokens (n, T, d), or images (n, height, width) or (n, height, width, "
        "channels).",
    )
    tokens = candidate.arrays[inputs].ndim == 3 and st.toggle(
        "Rows are tokens",
        key=f"{page}.tokens",
        help="(n, T, d): T tokens of d numbers each, as attention takes them; otherwise gray "
        "images.",
    )
    show_error(sentence, "features")
    what = "Labels (n,), one-hot rows (n, C), or numeric targets."
    target, task, scale = _target(page, titles, first, sentence, what)
    show_error(sentence, "classes")
    return Choices((inputs,), target, task, scale_targets=scale, tokens=tokens)


def _of_images(
    page: str,
    candidate: ImageFolders,
    first: Choices,
    limits: Limits,
    sentence: InvalidInput | None,
    more: DeltaGenerator,
) -> Choices:
    with more:
        classes = _classes(page, candidate.folders, sentence)
    side = st.number_input(
        "Side in pixels",
        value=first.side,
        step=1,
        key=f"{page}.side",
        help=f"Images are scaled to side × side by averaging, at most {limits.max_side}; 0: as "
        "they are.",
    )
    show_error(sentence, "side")
    gray = st.toggle(
        "Gray", value=first.gray, key=f"{page}.gray", help="One channel instead of three."
    )
    background = ""
    if any(entry.may_be_transparent for entry in candidate.entries):
        chosen = st.segmented_control(
            "Background",
            tuple(BACKGROUNDS),
            key=f"{page}.background",
            help="Behind transparent pixels, which are refused without one.",
        )
        background = chosen or ""
    show_error(sentence, "background")
    return replace(first, classes=classes, side=int(side), gray=gray, background=background)


def _target(
    page: str, titles: Mapping[str, str], first: Choices, sentence: InvalidInput | None, what: str
) -> tuple[str, Task, bool]:
    """Choose the target, its type, and standardization.

    The target is among the columns or arrays with these titles.
    """
    target = st.selectbox(
        "Target y",
        list(titles),
        index=list(titles).index(first.target) if first.target else 0,
        format_func=titles.__getitem__,
        key=f"{page}.target",
        help=what,
    )
    task = st.segmented_control(
        "Target type",
        TASKS,
        default=first.task,
        required=True,
        format_func=TASK_TITLES.__getitem__,
        key=f"{page}.task",
        help="A class for each sample (one output per class), or a number.",
    )
    show_error(sentence, "target", "task")
    if task == "classes":
        return target, task, True
    words = "Scale targets to mean 0 and variance 1, like network outputs."
    return (
        target,
        task,
        st.toggle("Standardize the target", value=True, key=f"{page}.scale", help=words),
    )


def _classes(page: str, names: tuple[str, ...], sentence: InvalidInput | None) -> tuple[str, ...]:
    words = "Classes to use; all when empty."
    chosen = st.multiselect("Classes", names, key=f"{page}.classes", placeholder="All", help=words)
    show_error(sentence, "classes")
    return tuple(chosen)


STANDARDIZED = {
    "raw": "Inputs are used as they are.",
    "unit-norm": "Each input is scaled to norm √d.",
    "standard": "Every entry gets mean 0 and variance 1 over the training points.",
    "centered": "Every entry gets mean 0 over the training points, then each input is scaled to "
    "norm √d.",
}


def file_preview(candidate: Candidate) -> None:
    """Columns with types and gaps and the first rows; arrays with shapes; folders with counts."""
    if isinstance(candidate, Table):
        shown = candidate.names[:MOST_PREVIEWED]
        which = (
            f"the first rows of the first {len(shown)}"
            if len(shown) < len(candidate.names)
            else "the first rows"
        )
        st.caption(f"{candidate.num_rows:,} rows, {len(candidate.columns):,} columns, {which}:")
        rows = [dict(zip(shown, row, strict=False)) for row in candidate.preview]
        st.dataframe(readable(rows), hide_index=True, alt="The first rows of the file")
        title = "Columns: types and missing values"
        with st.expander(title, icon=":material/view_column:", on_change="rerun") as columns:
            if columns.open:
                st.dataframe(
                    readable([_row_of_column(column) for column in candidate.columns]),
                    hide_index=True,
                    alt="Type, missing values and values of every column",
                )
    elif isinstance(candidate, Arrays):
        rows = [
            {"array": n, "shape": str(a.shape), "type": str(a.dtype)}
            for n, a in candidate.arrays.items()
        ]
        st.dataframe(
            readable(rows), hide_index=True, alt="Shape and type of every array of the file"
        )
    else:
        counts = Counter(entry.folder for entry in candidate.entries)
        sizes = candidate.sizes
        words = (
            f"{sizes[0][0]} × {sizes[0][1]} pixels"
            if len(sizes) == 1
            else f"{len(sizes)} different sizes"
        )
        st.caption(f"{len(candidate.entries):,} images of {words}")
        per_folder = [{"folder": folder, "images": counts[folder]} for folder in candidate.folders]
        st.dataframe(readable(per_folder), hide_index=True, alt="Images in every folder")


def _row_of_column(column: FileColumn) -> dict[str, object]:
    """Type, gaps and values of a column of a table, for the preview."""
    missing = [f"{count:,} × {text or 'empty'}" for text, count in column.missing.items()]
    return {
        "column": column.name,
        "type": column.kind,
        "missing": ", ".join(missing),
        "different values": None if column.kind == "varied text" else column.num_distinct,
        "constant": column.is_constant,
        "example": column.example,
    }


def sizes(data: Cleaned, num_samples: int) -> None:
    """Shape of an input, outputs, training points."""
    with st.container(horizontal=True):
        shape = " × ".join(map(str, data.input_shape))
        st.metric("Input x", shape, help="Shape of one input; d is the product.", width="content")
        st.metric(
            "Outputs C",
            data.num_outputs,
            help="One per class, or one per target column.",
            width="content",
        )
        st.metric(
            "Training points n",
            f"{num_samples:,}",
            help=f"Of {len(data.x):,} samples.",
            width="content",
        )


def samples(page: str, data: Cleaned, standardize: str, above: DeltaGenerator) -> None:
    """Show thumbnails, samples, counts, and the transformation of inputs.

    Samples are drawn in the plane of largest variance.

    Their exports are drawn in ``above``.
    """
    counts = ", ".join(f"{name} {count:,}" for name, count in data.counts.items())
    sentences = [
        f"Samples per class: {counts}." if counts else "No classes: the target is a number."
    ]
    sentences.append(STANDARDIZED[standardize])
    thumbnails = figures.images(data)
    if thumbnails:
        st.image(
            [pixels for pixels, _ in thumbnails],
            [plain(name) for _, name in thumbnails],
            width=72,
            alt=[f"an image of class {name}" for _, name in thumbnails],
        )
    drawn = Figures(page)
    caption = [shortened(each, MAX_SENTENCE) for each in sentences]
    show_chart(drawn, figures.scatter(data, caption))
    with above:
        export_menu("own-data", "Your data", (), drawn.charts)
