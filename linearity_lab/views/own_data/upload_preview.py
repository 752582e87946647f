"""A file as it came, and what a network will see of it."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from linearity_lab.components.chart import show_chart, shown_charts
from linearity_lab.components.export import export_menu
from linearity_lab.views.own_data import figures
from linearity_lab.words.markdown import plain
from ntk_core.data.uploads import Arrays, Candidate, Cleaned, Table

STANDARDIZED = {
    "raw": "Inputs are used as they are.",
    "unit-norm": "Each input is scaled to norm √d.",
    "standard": "Every entry gets mean 0 and variance 1 over the training points.",
    "centered": "Every entry gets mean 0 over the training points, then each input is scaled to norm √d.",
}


def file_preview(candidate: Candidate) -> None:
    """Columns with types and gaps and the first rows; arrays with shapes; folders with counts."""
    if isinstance(candidate, Table):
        st.caption(f"{candidate.num_rows:,} rows, {len(candidate.columns):,} columns, the first rows:")
        rows = [dict(zip(candidate.names, row, strict=True)) for row in candidate.preview]
        st.dataframe(rows, hide_index=True, alt="The first rows of the file")
        with st.expander("Columns: types and missing values", icon=":material/view_column:"):
            st.dataframe(column_rows(candidate), hide_index=True, alt="Type, missing values and values of every column")
    elif isinstance(candidate, Arrays):
        rows = [{"array": n, "shape": str(a.shape), "type": str(a.dtype)} for n, a in candidate.arrays.items()]
        st.dataframe(rows, hide_index=True, alt="Shape and type of every array of the file")
    else:
        counts = dict.fromkeys(candidate.folders, 0)
        for entry in candidate.entries:
            counts[entry.folder] += 1
        sizes = candidate.sizes
        words = f"{sizes[0][0]} × {sizes[0][1]} pixels" if len(sizes) == 1 else f"{len(sizes)} different sizes"
        st.caption(f"{len(candidate.entries):,} images of {words}")
        per_folder = [{"folder": folder, "images": count} for folder, count in counts.items()]
        st.dataframe(per_folder, hide_index=True, alt="Images in every folder")


def column_rows(table: Table) -> list[dict[str, object]]:
    """One row per column: type, gaps, different values, an example."""
    return [
        {
            "column": column.name,
            "type": column.kind,
            "missing": column.num_missing,
            "different values": column.num_distinct if column.kind != "varied text" else None,
            "constant": column.is_constant,
            "example": column.example,
        }
        for column in table.columns
    ]


def sizes(data: Cleaned, num_samples: int) -> None:
    """Shape of an input, outputs, training points."""
    with st.container(horizontal=True):
        shape = " × ".join(map(str, data.input_shape))
        st.metric("Input x", shape, help="Shape of one input; d is the product.", width="content")
        st.metric("Outputs C", data.num_outputs, help="One per class, or one per target column.", width="content")
        st.metric("Training points n", f"{num_samples:,}", help=f"Of {len(data.x):,} samples.", width="content")


def samples(page: str, data: Cleaned, standardize: str, above: DeltaGenerator) -> None:
    """Thumbnails, the samples in the plane of largest variance, counts, and what is done to the inputs.

    Their exports are drawn in ``above``.
    """
    counts = ", ".join(f"{name} {count:,}" for name, count in data.counts.items())
    sentences = [f"Samples per class: {counts}." if counts else "No classes: the target is a number."]
    sentences.append(STANDARDIZED[standardize])
    thumbnails = figures.images(data)
    if thumbnails:
        st.image([pixels for pixels, _ in thumbnails], [plain(name) for _, name in thumbnails], width=72,
                 alt=[f"an image of class {name}" for _, name in thumbnails])  # fmt: skip
    with shown_charts() as shown:
        show_chart(page, figures.scatter(data, _short(sentences)))
    with above:
        export_menu("own-data", "Your data", (), shown.charts)


def _short(sentences: Sequence[str]) -> list[str]:
    return [text if len(text) <= 400 else text[:399] + "…" for text in sentences]
