"""Sentences on an uploaded file.

What was decided, which cells count as missing, what is left out.
"""

from collections.abc import Sequence

from linearity_lab.data.uploads._candidate import (
    Arrays,
    Candidate,
    Choices,
    FileColumn,
    HeaderRule,
    ImageFolders,
    Table,
    is_row_number,
    suggested_target,
)
from linearity_lab.data.uploads._cells import advice_for, is_missing
from linearity_lab.data.uploads._clean import is_scaled

_NUM_LISTED = 5
_HEADERS = {
    HeaderRule.CHOSEN: "",
    HeaderRule.NAMES: "The first row names the columns: it has texts above numbers.",
    HeaderRule.TEXTS: "The first row names the columns, since its texts do not recur below.",
    HeaderRule.SAME_KINDS: "The first row is a sample: its cells are of the same kinds as those "
    "below.",
}


def described(candidate: Candidate, choices: Choices, *, max_classes: int = 20) -> tuple[str, ...]:
    """Return sentences on how a file is read and what becomes target and inputs."""
    if isinstance(candidate, Table):
        return _of_table(candidate, choices, max_classes)
    if isinstance(candidate, Arrays):
        return _of_arrays(candidate, choices)
    return _of_images(candidate, choices)


def _of_table(table: Table, choices: Choices, max_classes: int) -> tuple[str, ...]:
    target = table.by_name.get(choices.target)
    if target is None:
        return ()
    sentences = [_HEADERS[table.header]]
    reason = ""
    suggested, rule = suggested_target(table, max_classes)
    if suggested is target:
        reason = f", suggested because {rule.value}"
    task = "a class" if choices.task == "classes" else "a number (regression)"
    sentences.append(f"Target: {target.name}, {task}{reason}.")
    if choices.features:
        sentences.append(f"Inputs: {_listed(choices.features)}.")
    unused = []
    for column in table.columns:
        if column is not target and column.name not in choices.features:
            unused.append(f"{column.name} ({_why_unused(column)})")
    if unused:
        sentences.append(f"Not used: {_listed(unused)}.")
    for column in table.columns:
        is_class = column is target and choices.task == "classes"
        if is_class or column.name in choices.features or column is target:
            sentences.extend(_on_cells(column, is_class))
    return tuple(filter(None, sentences))


def _why_unused(column: FileColumn) -> str:
    if column.kind == "empty":
        return "empty"
    if column.clash:
        return f"text, since numbers such as {' and '.join(column.clash)} would change"
    if column.kind in ("text", "varied text"):
        advice = advice_for(column.obstacle)
        return f"text such as {column.obstacle}" + (f"; use {advice}" if advice else "")
    if column.is_constant:
        return "constant"
    return "row numbers" if is_row_number(column) else "numbers"


def _on_cells(column: FileColumn, is_class: bool) -> list[str]:
    """Return what happened to the cells of a column."""
    sentences = []
    missing = column.missing
    if is_class:
        missing = {"": column.num_empty} if column.num_empty else {}
        words = [text for text in column.texts if is_missing(text)]
        for index, text in enumerate(column.texts):
            if text in words:
                count = int((column.codes == index).sum())
                sentences.append(
                    f"{text} is a class of {column.name} with {count:,} rows, not a missing value."
                )
    if missing:
        counts = [f"{count:,} × {text or 'an empty cell'}" for text, count in missing.items()]
        sentences.append(f"Missing in {column.name}: {_listed(counts)}.")
    if column.merged and not column.is_numeric:
        first, second = column.merged
        sentences.append(
            f"In {column.name}, {first!r} and {second!r} are one text, without spaces around it."
        )
    if column.equal and is_class:
        first, second = column.equal
        sentences.append(f"In {column.name}, {first} and {second} are different classes.")
    elif column.equal:
        first, second = column.equal
        sentences.append(f"In {column.name}, {first} and {second} are the same number.")
    return sentences


def _of_arrays(candidate: Arrays, choices: Choices) -> tuple[str, ...]:
    name = (*choices.features, "")[0]
    x = candidate.arrays.get(name)
    if x is None:
        return ()
    images = x[..., None] if x.ndim == 3 else x
    use = "as they are"
    if is_scaled(images) and not choices.tokens:
        use = "as images, divided by " + ("255" if x.dtype.itemsize == 1 else "65,535")
    return (
        f"Inputs: {name}, {use}.",
        f"Target: {choices.target or 'none'}, "
        + ("a class." if choices.task == "classes" else "a number (regression)."),
    )


def _of_images(folders: ImageFolders, choices: Choices) -> tuple[str, ...]:
    sentences = ["Target: the folder of an image."]
    if folders.entries and folders.entries[0].depth == 16:
        sentences.append("Gray images of 16 bits, divided by 65,535.")
    else:
        sentences.append("Images of 8 bits, divided by 255.")
    turned = sum(entry.orientation != 1 for entry in folders.entries)
    if turned:
        noun = "image is" if turned == 1 else "images are"
        sentences.append(f"{turned:,} {noun} turned as the EXIF orientation states.")
    if choices.background and any(entry.may_be_transparent for entry in folders.entries):
        sentences.append(f"Transparent pixels show the background, {choices.background}.")
    return tuple(sentences)


def _listed(names: Sequence[str]) -> str:
    if len(names) <= _NUM_LISTED:
        return ", ".join(names)
    return f"{', '.join(names[:_NUM_LISTED])} and {len(names) - _NUM_LISTED} more"
