"""Widgets for what a person says about a file, each with its sentence beside it."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from dashboard.words.sentences import plain
from ntk_core.data.uploads import (
    TASKS,
    Arrays,
    Candidate,
    Choices,
    ImageFolders,
    Limits,
    Table,
    Task,
    suggested_choices,
)
from ntk_core.errors import InvalidInput

TASK_TITLES = {"classes": "Classes, one-hot", "regression": "Numbers (regression)"}


def read_choices(page: str, candidate: Candidate, limits: Limits, sentence: InvalidInput | None) -> Choices:
    """The widgets that this kind of file needs, filled with suggestions at first.

    Args:
        page: prefix of the widgets' keys, with the version of the file, so that another file begins anew.
        sentence: what was wrong with these choices when they were last tried.
    """
    first = suggested_choices(candidate, max_classes=limits.max_classes, max_side=limits.max_side)
    if isinstance(candidate, Table):
        found = _of_table(page, candidate, first, sentence)
    elif isinstance(candidate, Arrays):
        found = _of_arrays(page, candidate, first, sentence)
    else:
        found = _of_images(page, candidate, first, limits, sentence)
    return found


def say(sentence: InvalidInput | None, *fields: str) -> None:
    """The sentence, when it is about one of these fields."""
    if sentence is not None and sentence.field in fields:
        st.error(plain(f"{sentence}."))


def _of_table(page: str, table: Table, first: Choices, sentence: InvalidInput | None) -> Choices:
    kinds = {column.name: column for column in table.columns}
    target = st.selectbox(
        "Target y",
        table.names,
        index=table.names.index(first.target),
        key=f"{page}.target",
        help="The column that the network learns.",
    )
    task = _task(page, first.task)
    say(sentence, "target", "task")
    columns = [name for name in table.names if name != target]
    features = st.multiselect(
        "Features x",
        columns,
        default=[name for name in first.features if name != target],
        key=f"{page}.features",
        help="The input columns: numbers, not constant.",
    )
    say(sentence, "features")
    column = kinds[target]
    classes = _classes(page, column.texts, sentence) if task == "classes" and column.kind == "text" else ()
    drop = st.toggle(
        "Drop rows with missing values",
        key=f"{page}.drop_missing",
        help="Rows with a missing value in a chosen column; otherwise they are refused.",
    )
    scale = _scale(page) if task == "regression" else True
    return Choices(tuple(features), target, task, classes, drop, scale)


def _of_arrays(page: str, candidate: Arrays, first: Choices, sentence: InvalidInput | None) -> Choices:
    shapes = {name: f"{name} {array.shape}" for name, array in candidate.arrays.items()}
    names = list(shapes)
    inputs = st.selectbox(
        "Inputs x",
        names,
        index=names.index(first.features[0]) if first.features else 0,
        format_func=shapes.__getitem__,
        key=f"{page}.features",
        help="(n, features), or images (n, height, width) or (n, height, width, channels).",
    )
    say(sentence, "features")
    target = st.selectbox(
        "Target y",
        names,
        index=names.index(first.target) if first.target else 0,
        format_func=shapes.__getitem__,
        key=f"{page}.target",
        help="Labels (n,), one-hot rows (n, C), or numbers to be learned.",
    )
    task = _task(page, first.task)
    say(sentence, "target", "task", "classes")
    scale = _scale(page) if task == "regression" else True
    return Choices((inputs,), target, task, scale_targets=scale)


def _of_images(
    page: str, candidate: ImageFolders, first: Choices, limits: Limits, sentence: InvalidInput | None
) -> Choices:
    classes = _classes(page, candidate.folders, sentence)
    side = st.number_input(
        "Side in pixels",
        value=first.side,
        step=1,
        key=f"{page}.side",
        help=f"All images are scaled to side × side by averages, at most {limits.max_side}; 0: as they are.",
    )
    say(sentence, "side")
    gray = st.toggle("Gray", value=first.gray, key=f"{page}.gray", help="One channel instead of three.")
    return replace(first, classes=classes, side=int(side), gray=gray)


def _task(page: str, first: Task) -> Task:
    return st.segmented_control(
        "What is learned",
        TASKS,
        default=first,
        required=True,
        format_func=TASK_TITLES.__getitem__,
        key=f"{page}.task",
        help="A class for each sample (one output per class), or a number.",
    )


def _classes(page: str, names: tuple[str, ...], sentence: InvalidInput | None) -> tuple[str, ...]:
    chosen = st.multiselect(
        "Classes",
        names,
        key=f"{page}.classes",
        placeholder="All",
        help="Which classes to keep; all when empty.",
    )
    say(sentence, "classes")
    return tuple(chosen)


def _scale(page: str) -> bool:
    return st.toggle(
        "Standardize the target", value=True, key=f"{page}.scale", help="To mean 0 and variance 1, as networks start."
    )
