"""Exports of a run as text.

The command, program or notebook that recomputes it, and a page of HTML.
"""

import html
import json
import pprint
import shlex
from collections.abc import Iterable, Sequence

import plotly.graph_objects as go

from linearity_lab.charts.chart import Chart
from linearity_lab.charts.figure import main_chart, shown_result
from linearity_lab.charts.style import CHART_CONFIG
from linearity_lab.citation import provenance_sentence
from linearity_lab.runs import PRESETS, ResultValue, Spec, spec_digest
from linearity_lab.settings.grammar import changed_values, differences
from linearity_lab.words.run_words import nearest_preset, variation
from ntk_core import __version__
from ntk_core.errors import InvalidInput
from ntk_core.markup import without_marks

# The imports of ntk_core and Plotly, with the bounds of requirements-core.txt and requirements.txt.
NEEDED = (
    "jax>=0.10.2",
    "jaxtyping>=0.3",
    "lazy-loader>=0.4",
    "numpy>=2.0",
    "optax>=0.2.4",
    "platformdirs>=4.3",
    "plotly>=7.1",
    "pydantic-settings>=2.11",
    "pydantic>=2.12",
    "scipy>=1.14",
)
_INSTALL = (
    "It needs ntk_core of Linearity Lab {version}, which is not on any package index. "
    "Install it once from the\n"
    "project's directory by `python -m pip install .`; then this runs in any folder."
)
_PROGRAM = '''\
# /// script
# requires-python = ">=3.11"
# dependencies = [
{needed}
# ]
# ///
"""{title}

{install}
With uv instead: `uv run --with DIRECTORY_OF_THE_PROJECT PROGRAM`.
"""

{settings}

for event in linearity_lab.run(spec):
    print(event.kind, getattr(event, "key", ""), getattr(event, "message", ""))
print(event.result.csv())
draw(event.result).write_html("figure.html")
print("The figure is in figure.html.")
'''
_SETTINGS = '''\
import linearity_lab
from linearity_lab.notebook import draw

settings = {settings}
spec = linearity_lab.experiments.with_settings(linearity_lab.presets()["{preset}"], settings)
assert linearity_lab.experiments.spec_digest(spec) == "{digest}"'''
_PAGE_STYLE = (
    "body{font-family:sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1B2430;background:#fff}"
    "pre{overflow-x:auto;background:#F3F5F8;padding:.6rem}"
    "@media print{button,.modebar,details{display:none}"
    "figure{break-inside:avoid;break-after:avoid}}"
)

# A browser prints to PDF: figures with their captions, without buttons.
_PRINT = '<p><button type="button" onclick="print()">Print, or save as PDF</button></p>'


def command_line(spec: Spec) -> str:
    """Return the shell command that computes ``spec``, from the nearest preset if possible."""
    if own := spec.command():
        return shlex.join(["linearity-lab", *own])
    name = nearest_preset(spec)
    parts = ["linearity-lab", "run", name]
    for setting, text in differences(spec, PRESETS[name].spec).items():
        parts += ["--set", f"{setting}={text}"]
    return shlex.join([*parts, "--out", "results"])


def program(title: str, spec: Spec) -> str:
    """Return a Python program that computes ``spec``.

    It prints progress and numbers, and checks the digest.

    It states what it needs as PEP 723 asks.
    """
    return _PROGRAM.format(
        title=title.replace("\\", "").replace('"', "'"),
        install=_INSTALL.format(version=__version__),
        needed="\n".join(f'#     "{each}",' for each in NEEDED),
        settings=_settings(spec),
    )


def notebook(title: str, spec: Spec) -> str:
    """Return a Jupyter notebook (nbformat 4.5) of ``spec``.

    Settings and cost, run, result with figure, table.
    """
    install = _INSTALL.format(version=__version__)
    about = f"# {title}\n\nThe settings are those of `{variation(spec)}`. {install}"
    run = "*_, ended = linearity_lab.run(spec)\nended.result"
    code = [f"{_settings(spec)}\nspec", run, "draw(ended.result)", "print(ended.result.csv())"]
    cells: list[dict[str, object]] = [{"cell_type": "markdown", "source": about}]
    cells += [
        {"cell_type": "code", "source": each, "outputs": [], "execution_count": None}
        for each in code
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return json.dumps(
        {
            "cells": [
                {"id": f"cell-{index}", "metadata": {}, **cell} for index, cell in enumerate(cells)
            ],
            "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        },
        indent=1,
    )


def export_text(spec: Spec, result: ResultValue | None, suffix: str) -> str:
    """Return the program, notebook or page with the first figure of a run.

    Their endings are ``.py``, ``.ipynb`` and ``.html``.

    Raises:
        InvalidInput: for a program or notebook of a model whose file is not kept.
    """
    if suffix == ".html" and result is not None:
        return page_html(variation(spec), [main_chart(shown_result(result))], [result])
    if spec.command():
        raise InvalidInput(
            "--out", suffix, ".json, .csv or .html; the store does not contain the model's file"
        )
    return (program if suffix == ".py" else notebook)(variation(spec), spec)


def _settings(spec: Spec) -> str:
    name = nearest_preset(spec)
    changed: dict[str, object] = changed_values(spec, PRESETS[name].spec)
    written = pprint.pformat(changed, width=110, sort_dicts=False)
    return _SETTINGS.format(settings=written, preset=name, digest=spec_digest(spec))


def page_html(title: str, charts: Iterable[Chart], results: Sequence[ResultValue]) -> str:
    """Return one offline HTML page: interactive figures, captions, specs and origins."""
    parts = []
    for index, chart in enumerate(charts):
        caption = html.escape(without_marks(chart.takeaway))
        below = html.escape(without_marks(" ".join((chart.takeaway, *chart.caption))))
        light = go.Figure(chart.sent.to_dict()).update_layout(template="plotly_white")
        drawn = light.to_html(full_html=False, include_plotlyjs=index == 0, config=CHART_CONFIG)
        parts.append(f'<figure role="img" aria-label="{caption}">{drawn}</figure>')
        parts.append(f"<p>{below}</p>")
    for result in results:
        spec = html.escape(result.spec.model_dump_json(indent=1))
        parts.append(f"<p>{html.escape(provenance_sentence(result))}</p>")
        parts.append(f"<pre>{html.escape(command_line(result.spec))}</pre>")
        parts.append(f"<details><summary>Settings</summary><pre>{spec}</pre></details>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title>"
        f'<meta name="viewport" content="width=device-width"><style>{_PAGE_STYLE}</style></head>'
        f"<body><main><h1>{html.escape(title)}</h1>{_PRINT}{''.join(parts)}</main></body></html>"
    )
