"""What can be exported of a run, as text: the command and the program that compute it again, one page of HTML."""

import html
import pprint
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from dashboard.charts.style import CHART_CONFIG
from dashboard.components.provenance import provenance_sentence
from dashboard.words.run_words import nearest_preset
from ntk_core.runs import PRESETS, ResultValue, Spec, digest
from ntk_core.settings.fields import changed_values, differences

_PROGRAM = '''\
"""{title} Computed with ntk_core: run it where the project is, or where it is installed."""

import ntk_core

settings = {settings}
spec = ntk_core.with_settings(ntk_core.presets()["{preset}"], settings)
assert ntk_core.digest(spec) == "{digest}"

for event in ntk_core.run(spec):
    print(event.kind, getattr(event, "key", ""), getattr(event, "message", ""))
print(event.result.csv())
'''
_PAGE_STYLE = (
    "body{font-family:sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1B2430;background:#fff}"
    "pre{overflow-x:auto;background:#F3F5F8;padding:.6rem}"
)


def command_line(spec: Spec) -> str:
    """The shell command that computes ``spec``: the nearest preset, and what differs from it as ``--set``."""
    name = nearest_preset(spec)
    parts = ["python", "-m", "ntk_core", "run", name]
    for setting, text in differences(spec, PRESETS[name].spec).items():
        parts += ["--set", f"{setting}={text}"]
    return shlex.join([*parts, "--out", "results"])


def program(title: str, spec: Spec) -> str:
    """A Python program that computes ``spec``, prints what happens and then the numbers, and checks that it is this."""
    name = nearest_preset(spec)
    settings: dict[str, Any] = changed_values(spec, PRESETS[name].spec)
    written = pprint.pformat(settings, width=110, sort_dicts=False)
    return _PROGRAM.format(
        title=title.replace("\\", "").replace('"', "'"), settings=written, preset=name, digest=digest(spec)
    )


def page_html(title: str, figures: Mapping[str, go.Figure], results: Sequence[ResultValue]) -> str:
    """One HTML page that needs no network: figures that can be zoomed, their captions, the specs and their origin."""
    parts = []
    for index, (caption, figure) in enumerate(figures.items()):
        light = go.Figure(figure).update_layout(template="plotly_white")
        drawn = light.to_html(full_html=False, include_plotlyjs=index == 0, config=CHART_CONFIG)
        parts.append(f'<figure role="img" aria-label="{html.escape(caption)}">{drawn}</figure>')
        parts.append(f"<p>{html.escape(caption)}</p>")
    for result in results:
        spec = html.escape(result.spec.model_dump_json(indent=1))
        parts.append(f"<p>{html.escape(provenance_sentence(result))}</p>")
        parts.append(f"<pre>{html.escape(command_line(result.spec))}</pre>")
        parts.append(f"<details><summary>Settings</summary><pre>{spec}</pre></details>")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_PAGE_STYLE}</style></head>'
        f"<body><main><h1>{html.escape(title)}</h1>{''.join(parts)}</main></body></html>"
    )
