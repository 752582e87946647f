"""Runs in one file: complete ones are restored, others are named and skipped."""

from __future__ import annotations

import io
import json
from typing import Any, cast

import pytest
from pydantic import BaseModel

from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.runs import KINDS, Value, spec_digest
from linearity_lab.runs._documents import _parts_in
from linearity_lab.runs.gallery import GALLERY
from linearity_lab.runs.store import Store, UnusableLine, read_runs, run_line, write_runs
from linearity_lab.runs.store._import_checks import (
    STEP_FIELDS,
    check_result,
    check_size_of_line,
)
from linearity_lab.runs.store._run_file import read_line, sha
from ntk_core.errors import InvalidInput
from tests.runs.store.made_runs import ROOT, SPEC, point, result, spec


@pytest.fixture
def other(tmp_path):
    store = Store(tmp_path / "other.sqlite")
    yield store
    store.close()


SEEDED = (
    "kernel_change",
    "architectures",
    "hessian",
    "dynamics",
    "optimization",
    "lazy",
    "depth_width",
    "dag",
    "early_time",
    "learning_rate",
    "horizon",
    "generalization",
)
LINES = [run_line(result()).encode(), run_line(result("cancelled", spec=spec(9))).encode()]


def signed(line: bytes, **changes: object) -> bytes:
    """The line with these changes and a matching SHA-256."""
    data = {**json.loads(line), **changes}
    del data["sha256"]
    text = json.dumps(data, separators=(",", ":"))
    return f'{text[:-1]},"sha256":"{sha(text)}"}}\n'.encode()


def test_exported_runs_come_back_as_they_were(store, other):
    store.save_result(result())
    store.save_result(result("cancelled", spec=spec(1)))
    store.points(spec(2)).save("width=20", point(20))
    store.save_spec(spec(3))  # no file for runs without a point
    file = io.BytesIO()
    assert write_runs(store, [spec_digest(spec(number)) for number in (0, 1, 2, 3, 4)], file) == 3
    file.seek(0)
    back = read_runs(other, file)
    assert (back.digests, back.left_aside) == (
        tuple(spec_digest(spec(number)) for number in (0, 1, 2)),
        (),
    )
    assert other.result(spec_digest(SPEC)) == result().as_imported()
    partial = result("cancelled", spec=spec(1))
    assert other.result(spec_digest(spec(1))) == partial.as_imported()
    (kept,) = other.points_of(spec_digest(spec(2))).values()
    assert kept.runs == point(20).runs
    assert other.result(spec_digest(spec(2))).status == "cancelled"
    assert {run.imported for run in other.runs().runs} == {True}
    assert {run.imported for run in store.runs().runs} == {False}


def test_what_is_here_already_stays(other):
    other.points(SPEC).save("width=10", point(10, change=0.125))
    read_runs(other, io.BytesIO(b"".join(LINES)))
    assert other.points_of(spec_digest(SPEC)) == {
        "width=10": point(10, change=0.125),
        "width=20": result().as_imported().points[1],
    }
    assert {(run.status, run.imported) for run in other.runs().runs} == {
        ("completed", True),
        ("cancelled", True),
    }
    read_runs(other, io.BytesIO(b"".join(LINES)))
    assert other.runs().total == 2


def test_a_damaged_line_costs_no_other_run(other):
    damaged = LINES[0].replace(b"0.5", b"0.6", 1)
    back = read_runs(other, io.BytesIO(damaged + b"\n" + LINES[1] + LINES[0][:200]))
    assert back.digests == (spec_digest(spec(9)),)
    assert back.left_aside == (
        "line 1: damaged; its SHA-256 does not match",
        "line 4: damaged; it is no JSON",
    )


def changed(data: dict, **changes: object) -> dict:
    """The points with changes in the first one."""
    return {"points": [{**data["points"][0], **changes}, *data["points"][1:]]}


def changed_run(data: dict, **changes: object) -> dict:
    """The points with changes in the first run."""
    return changed(data, runs=[{**data["points"][0]["runs"][0], **changes}])


FORGERIES = {
    "impossible settings": lambda data: {"spec": {**data["spec"], "num_seeds": -5}},
    "an older version": lambda data: {"spec": {**data["spec"], "schema_version": 0}},
    "a point twice": lambda data: {"points": data["points"][:1] * 2},
    "a point of no setting": lambda data: changed(data, width=99),
    "a status that is none": lambda data: {"status": "won"},
    "half a result called completed": lambda data: {"points": data["points"][:1]},
    "numbers that are texts": lambda data: changed(data, width="x"),
    "a run three times": lambda data: changed(data, runs=data["points"][0]["runs"] * 3),
    "a seed of no setting": lambda data: changed_run(data, seed=5),
    "an output of no setting": lambda data: changed_run(data, output="tanh"),
    "a curve with fewer records": lambda data: changed_run(data, change=[0.0]),
    "a curve with more records": lambda data: changed_run(data, loss=[1.0] * 9),
    "steps in another order": lambda data: changed_run(data, steps=[1, 0]),
    "a step twice": lambda data: changed_run(data, steps=[0, 0]),
    "more steps than the settings allow": lambda data: changed_run(data, steps=[0, 10**6]),
    "a negative change": lambda data: changed_run(data, change=[0.0, -0.5]),
    "a negative change as text": lambda data: changed_run(data, change=[0.0, "-Infinity"]),
    "a negative number of parameters": lambda data: changed(data, num_params=-4),
    "a number as text": lambda data: changed_run(data, change=[0.0, "0.5"]),
    "a number as truth": lambda data: changed_run(data, change=[0.0, True]),
    "an integer as text": lambda data: changed(data, num_params="40"),
    "an integer with a point": lambda data: changed(data, num_params=40.0),
    "a run time as text": lambda data: {"runtime_s": "0.25"},
    "no points": lambda data: {"points": [], "status": "cancelled"},
    "a point without runs": lambda data: changed(data, runs=[]),
    "a number whose square overflows": lambda data: changed_run(data, change=[0.0, 1e308]),
    "such a number as text": lambda data: changed_run(data, change=[0.0, "1e308"]),
    "a converged run with NaN": lambda data: changed_run(
        data, outcome="converged", change=[0.0, "NaN"], loss=[1.0, 0.0]
    ),
    "a bare NaN": lambda data: {"runtime_s": float("nan")},
    "an infinite run time": lambda data: {"runtime_s": "Infinity"},
    "a negative run time": lambda data: changed(data, runtime_s=-1.0),
    "an unpaired surrogate": lambda data: {
        "provenance": {**data["provenance"], "device": "\ud800"}
    },
    "far too many rows": lambda data: changed(data, runs=data["points"][0]["runs"] * 20_000),
    "more than a result": lambda data: {"path": "../../etc/passwd"},
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=list(FORGERIES))
def test_a_forged_run_is_named_even_with_a_matching_checksum(other, forgery):
    back = read_runs(
        other, io.BytesIO(LINES[1] + signed(LINES[0], **forgery(json.loads(LINES[0]))))
    )
    assert back.digests == (spec_digest(spec(9)),)
    (sentence,) = back.left_aside
    assert sentence.startswith("line 2: ")
    assert len(sentence) < 120
    assert other.runs().total == 1


def places_of_floats(data: object, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of keys and indices of every float."""
    if isinstance(data, float):
        return [place]
    if not isinstance(data, dict | list):
        return []
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    return [inner for key, each in entries for inner in places_of_floats(each, (*place, key))]


def with_number(place: tuple[Any, ...], text: str) -> str:
    """Return a line with another number at a place, and a matching SHA-256."""
    data: Any = json.loads(LINES[0])
    del data["sha256"]
    group = data
    for key in place[:-1]:
        group = group[key]
    group[place[-1]] = 0.123456789
    line = json.dumps(data, separators=(",", ":")).replace("0.123456789", text)
    return f'{line[:-1]},"sha256":"{sha(line)}"}}'


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "1e151"])
def test_every_number_of_a_line_is_a_finite_one(text):
    places = places_of_floats(json.loads(LINES[0]))
    assert len(places) >= 8
    assert read_line(with_number(("runtime_s",), "0.25")).runtime_s == 0.25
    for place in places:
        with pytest.raises(UnusableLine):
            read_line(with_number(place, text))


@pytest.mark.parametrize(
    ("forgery", "problem"),
    [
        (lambda data: {"spec": {**data["spec"], "epochs": 3}}, "settings are not valid; epochs: "),
        (FORGERIES["impossible settings"], "settings are not valid; num_seeds: -5"),
        (FORGERIES["a status that is none"], "field 'status' is not valid"),
        (FORGERIES["numbers that are texts"], "field 'points.0.width' is not valid"),
    ],
)
def test_the_field_of_a_line_that_is_not_valid_is_named(other, forgery, problem):
    forged = signed(LINES[0], **forgery(json.loads(LINES[0])))
    back = read_runs(other, io.BytesIO(forged + LINES[1]))
    (sentence,) = back.left_aside
    assert sentence.startswith(f"line 1: its {problem}")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"PK\x03\x04" + b"\0" * 400, b'{"format": "other"}\n', b"[" * 100_000]
)
def test_invalid_run_file_is_refused_in_one_sentence(other, content):
    with pytest.raises(InvalidInput) as caught:
        read_runs(other, io.BytesIO(content))
    assert caught.value.field == "file"
    assert "\n" not in str(caught.value)


def test_lines_that_are_no_runs_are_named(other):
    lines = (b"[" * 100_000, b"[]", b"3", b"NaN", b"9" * 5000, b"null", b"\xff", b'{"a": NaN}')
    back = read_runs(other, io.BytesIO(LINES[0] + b"\n".join(lines) + b"\n" + LINES[1]))
    assert back.digests == (spec_digest(SPEC), spec_digest(spec(9)))
    assert [words.partition(":")[0] for words in back.left_aside] == [
        f"line {2 + k}" for k in range(len(lines))
    ]


def test_imported_survives_an_export_and_an_import(other, tmp_path):
    read_runs(other, io.BytesIO(LINES[0]))
    file = io.BytesIO()
    write_runs(other, [spec_digest(SPEC)], file)
    assert file.getvalue().count(b'"imported":true') == 3  # the result and both points
    third = Store(tmp_path / "third.sqlite")
    file.seek(0)
    assert read_runs(third, file).left_aside == ()
    again = third.result(spec_digest(SPEC))
    third.close()
    assert again.num_imported == 2
    assert again.csv().splitlines()[0].endswith(",imported")
    assert b"imported" not in LINES[0]
    assert "imported" not in result().csv()


def test_export_of_a_released_version_is_imported_wholly(other):
    with (ROOT / "tests/runs/stores/0.2.0/runs.jsonl").open("rb") as file:
        found = read_runs(other, file)
    assert found.left_aside == ()
    assert len(found.digests) == 28


def line_of(experiment: str) -> bytes:
    """The first line of the released export with points of this experiment, else of the gallery."""
    lines = (ROOT / "tests/runs/stores/0.2.0/runs.jsonl").read_bytes().splitlines(keepends=True)
    for line in lines:
        data = json.loads(line)
        points = data["points"]
        if data["spec"]["experiment"] == experiment and points:
            return line
    # Experiments that are younger than this release.
    name = {"explore": "explore", "adding": "adding-curves", "attribution": "point-worth"}
    return run_line(gallery_result(name[experiment])).encode()


@pytest.mark.parametrize("experiment", SEEDED)
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_required_numbers_are_finite_in_every_experiment(other, experiment, number):
    """Each single float of the first run in turn, where the run ended well."""
    line = line_of(experiment)
    data = json.loads(line)
    result = read_line(line.decode())
    run = cast(Any, result.points[0]).runs[0]
    fields = type(run).model_fields
    if "outcome" in fields and run.outcome == "over-budget":
        data["points"][0]["runs"][0]["outcome"] = "converged"
    unchanged = read_runs(other, io.BytesIO(signed(line, points=data["points"])))
    assert unchanged.left_aside == ()
    tried = 0
    for name, field in fields.items():
        if field.annotation is not float or not field.is_required():
            continue
        runs = [dict(each) for each in data["points"][0]["runs"]]
        runs[0][name] = number
        forged = signed(line, **changed(data, runs=runs))
        found = read_runs(other, io.BytesIO(forged))
        assert len(found.left_aside) == 1, name
        tried += 1
    assert tried >= 1


NESTED = {
    "hessian": lambda run: run["bound"].update(q_inf="NaN"),
    "dynamics": lambda run: run["network"].update(
        outcome="converged", distance=["Infinity"] * len(run["steps"])
    ),
}


@pytest.mark.parametrize("experiment", NESTED)
def test_numbers_of_nested_records_are_finite(other, experiment):
    line = line_of(experiment)
    data = json.loads(line)
    (run, *others) = data["points"][0]["runs"]
    NESTED[experiment](run)
    forged = signed(line, **changed(data, runs=[run, *others]))
    (sentence,) = read_runs(other, io.BytesIO(forged)).left_aside
    assert "is not finite" in sentence


def places_of_numbers(data: object, place: tuple[Any, ...] = ()) -> dict[str, tuple[Any, ...]]:
    """Return the path of one number for each name of a field, the last entry of a list."""
    if isinstance(data, int | float) and not isinstance(data, bool):
        names = [part for part in place if isinstance(part, str)]
        return {".".join(names): place}
    if not isinstance(data, dict | list):
        return {}
    found = {}
    for key, inner in data.items() if isinstance(data, dict) else enumerate(data):
        found.update(places_of_numbers(inner, (*place, key)))
    return found


def with_value(data: Any, place: tuple[Any, ...], value: object) -> Any:
    """Return a copy of nested lists and dictionaries with another value at one place."""
    if not place:
        return value
    key, *inner = place
    entries = dict(data) if isinstance(data, dict) else list(data)
    entries[key] = with_value(entries[key], tuple(inner), value)
    return entries


def is_refused(line: bytes, data: dict[str, Any], place: tuple[Any, ...], value: object) -> bool:
    forged = signed(line, points=with_value(data["points"], place, value))
    try:
        read_line(forged.decode())
    except UnusableLine:
        return True
    return False


# Numbers that may be negative: inputs, targets, outputs, logarithms, differences, and eigenvalues
# of kernels and similarities of them, whose rounding may pass 0.
SIGNED = {
    "clock", "log_loss", "at", "x", "y", "x_test", "y_test", "x_train", "y_train", "targets",
    "outputs", "outputs_linear", "test_outputs", "followed", "together", "summed", "tasks",
    "of_linear", "removed", "changes", "rank", "initial", "final", "infinite",
    "initial_eigenvalues", "final_eigenvalues", "smallest", "largest", "smallest_eigenvalue",
    "ball_eigenvalue", "pre_output_smallest", "curvature", "peak_curvature", "predicted_peak",
    "hessian_last_gain", "kernel_change_last_gain", "share", "output_share", "kernel_share",
    "alignment", "first_share", "last_share", "angles",
}  # fmt: skip


@pytest.mark.first_cases(9)
@pytest.mark.parametrize("experiment", sorted(KINDS))
def test_numbers_have_type_and_sign_of_their_field(experiment):
    """One number of each field in turn, as text, as truth, and below 0."""
    line = line_of(experiment)
    data = json.loads(line)
    places = places_of_numbers(data["points"])
    assert len(places) >= 5
    for name, place in places.items():
        value = data
        for key in ("points", *place):
            value = value[key]
        assert is_refused(line, data, place, str(value)), name
        assert is_refused(line, data, place, True), name
        # Constants of linear models are any numbers; one is called a norm.
        is_signed = name.rpartition(".")[2] in SIGNED or name.startswith("constants")
        if not is_signed:
            assert is_refused(line, data, place, -1 - abs(value)), name


def test_every_count_of_steps_has_its_largest_number():
    waiting: list[type[BaseModel]] = [experiment.point for experiment in KINDS.values()]
    seen = set()
    while waiting:
        part = waiting.pop()
        if part not in seen and issubclass(part, Value):
            seen.add(part)
            for field in part.model_fields.values():
                waiting += _parts_in(field.annotation)
    names = {name for part in seen for name in part.model_fields}
    assert len(seen) > 40
    assert {name for name in names if "step" in name} == set(STEP_FIELDS)


@pytest.mark.parametrize(
    ("experiment", "place"),
    [
        ("dynamics", ("network", "distance")),
        ("dynamics", ("layer_change", "hidden1")),
        ("early_time", ("linear", "span_loss")),
        ("generalization", ("alignment",)),
        ("horizon", ("difference",)),
        ("optimization", ("pl_ratio",)),
    ],
)
def test_every_curve_has_one_entry_for_each_record(experiment, place):
    line = line_of(experiment)
    data = json.loads(line)
    (run, *_) = data["points"][0]["runs"]
    curve = run
    for name in place:
        curve = curve[name]
    lengths: list[list[float]] = [[], curve[1:], curve + curve[-1:]]
    for wrong in lengths:
        forged = with_value(data["points"], (0, "runs", 0, *place), wrong)
        with pytest.raises(UnusableLine, match=r"records and \d+ entries in"):
            read_line(signed(line, points=forged).decode())


@pytest.mark.parametrize(("experiment", "name"), [("dag", "graph"), ("own_model", "output")])
def test_names_are_those_of_the_settings(experiment, name):
    """Of graphs, and of a setting that an experiment does not have."""
    line = line_of(experiment)
    data = json.loads(line)
    forged = with_value(data["points"], (0, "runs", 0, name), "softmax")
    with pytest.raises(UnusableLine, match=f"whose {name} its settings exclude"):
        read_line(signed(line, points=forged).decode())


@pytest.mark.parametrize("name", ["x", "y", "x_test", "y_test"])
def test_data_of_a_point_are_finite(other, name):
    line = line_of("dynamics")
    data = json.loads(line)
    forged = signed(line, **changed(data, **{name: [["NaN"]]}))
    (sentence,) = read_runs(other, io.BytesIO(forged)).left_aside
    assert f"has {name} that are not finite" in sentence


@pytest.mark.parametrize("experiment", SEEDED)
def test_numbers_of_records_are_those_of_the_settings(other, experiment):
    """In every field that an experiment states, none, one less and one more are refused."""
    line = line_of(experiment)
    data = json.loads(line)
    found = read_line(line.decode())
    point: Any = found.points[0]
    stated = found.spec.num_records(point.key)
    assert stated["runs"] == len(point.runs) >= 1
    for name, expected in stated.items():
        entries = list(data["points"][0].get(name, []))
        assert len(entries) == expected
        wrong = [[], entries[1:], entries + entries[:1]] if entries else []
        for each in wrong:
            refused = read_runs(other, io.BytesIO(signed(line, **changed(data, **{name: each}))))
            (sentence,) = refused.left_aside
            assert f"its settings give {expected}" in sentence


@pytest.mark.parametrize(
    ("preset", "field"),
    [("kernel-velocity", "at_start"), ("hu-fig5", "kernels"), ("bottleneck", "snapshots")],
)
def test_points_without_other_records_are_refused(preset, field):
    """Some settings train nothing, so that their points have other records instead of runs."""
    found = gallery_result(preset)
    check_result(found)
    without = found.points[0].model_copy(update={field: ()})
    with pytest.raises(UnusableLine, match=f"0 entries in {field}; its settings give"):
        check_result(found.model_copy(update={"points": (without, *found.points[1:])}))


def test_only_trained_pairs_need_runs():
    found = gallery_result("depth-width")
    check_result(found)
    for number, pair in enumerate(found.points):
        is_trained = found.spec.trains(pair.depth, pair.width)
        assert bool(pair.runs) == is_trained
        other_runs = () if is_trained else found.points[0].runs
        points = list(found.points)
        points[number] = pair.model_copy(update={"runs": other_runs})
        with pytest.raises(UnusableLine, match="entries in runs; its settings give"):
            check_result(found.model_copy(update={"points": tuple(points)}))


def test_every_experiment_states_its_numbers_of_runs():
    for experiment in KINDS.values():
        if "runs" in experiment.point.model_fields:
            spec = experiment.spec()
            for key in spec.point_keys():
                assert "runs" in spec.num_records(key)


@pytest.mark.parametrize("name", [path.stem for path in sorted(GALLERY.glob("*.json"))])
def test_computed_results_pass_the_checks_of_imports(name):
    found = gallery_result(name)
    check_size_of_line(found.spec, len(run_line(found)))
    check_result(found)
