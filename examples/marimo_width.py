"""A marimo notebook: choose widths and an output, and see whether the kernel stops changing.

PYTHONPATH=. marimo edit examples/marimo_width.py     # or: marimo run, without the code
PYTHONPATH=. python examples/marimo_width.py          # computes it once, as a program
"""

import marimo

app = marimo.App(app_title="Does the kernel stop moving?")


@app.cell
def _():
    import marimo as mo

    import linearity_lab

    return linearity_lab, mo


@app.cell
def _(mo):
    output = mo.ui.dropdown(["linear", "softmax", "swish"], value="linear", label="Output φ")
    widest = mo.ui.slider(
        steps=[100, 300, 1000], value=100, label="Largest width m", show_value=True
    )
    mo.vstack([mo.md("# Does the kernel stop moving?"), output, widest])
    return output, widest


@app.cell
def _(linearity_lab, output, widest):
    _given = {
        "widths": [10, 30, widest.value],
        "num_seeds": 3,
        "outputs": [output.value],
        "dataset.num_samples": 12,
    }
    spec = linearity_lab.experiments.with_settings(linearity_lab.presets()["liu-fig1-left"], _given)
    spec
    return (spec,)


@app.cell
def _(linearity_lab, spec):
    *_, ended = linearity_lab.run(spec)
    ended.result
    return (ended,)


@app.cell
def _(mo):
    mo.md(
        "With a linear output the kernel change ΔK decreases with the width: the network becomes a "
        "linear model. With a softmax or swish output it stays constant (Liu, Zhu & Belkin 2020, "
        "Fig. 1 left)."
    )
    return


if __name__ == "__main__":
    app.run()
