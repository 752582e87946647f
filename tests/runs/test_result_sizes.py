"""Estimated sizes of results: refused by name, and above what results take."""

import pytest

from linearity_lab.dashboard.gallery import gallery_result
from linearity_lab.experiments.kernel_change.spec import KernelChangeSpec
from linearity_lab.runs import PRESETS, check_result_size, check_size, result_bytes
from linearity_lab.runs.gallery import GALLERY
from linearity_lab.settings.grammar import with_settings
from ntk_core.errors import ResultTooLarge

KERNELS = with_settings(
    KernelChangeSpec(),
    {
        "keep_kernels": True,
        "dataset.num_samples": 1000,
        "widths": (10, 11, 12, 13, 14, 15),
        "outputs": ("linear", "softmax", "swish"),
        "training.max_steps": 1,
    },
)


def test_kept_kernels_are_refused_by_name_with_a_remedy():
    with pytest.raises(ResultTooLarge) as refused:
        check_size(KERNELS, max_result_bytes=2**25)
    error = refused.value
    assert (error.field, error.nearest) == ("keep_kernels", False)
    assert str(error).startswith("keep_kernels: True cannot be used; use False here, since its ")
    assert "are allowed" in str(error)
    check_size(with_settings(KERNELS, {"keep_kernels": False}), max_result_bytes=2**25)
    check_size(with_settings(KERNELS, {"dataset.num_samples": 300}), max_result_bytes=2**25)


def test_many_seeds_are_refused_by_their_number():
    spec = KernelChangeSpec(num_seeds=100, widths=tuple(range(10, 34)))
    with pytest.raises(ResultTooLarge) as refused:
        check_result_size(spec, 2**22)
    assert refused.value.field == "num_seeds"
    fewer = with_settings(spec, {"num_seeds": refused.value.nearest})
    check_result_size(fewer, 2**22)


@pytest.mark.parametrize("name", [path.stem for path in sorted(GALLERY.glob("*.json"))])
def test_no_result_of_the_gallery_exceeds_its_estimate(name):
    result = gallery_result(name)
    estimated = result_bytes(PRESETS[name].spec)
    for point in result.points:
        assert len(point.model_dump_json()) <= 1.5 * estimated[point.key], point.key
