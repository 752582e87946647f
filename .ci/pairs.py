"""Compute the first answers of *Explore* that are missing or have other settings:
``make pairs``.
"""

import gzip
import sys

from linearity_lab.experiments.explore.pairs import pair_file, pairs
from linearity_lab.experiments.explore.point import ExploreResult
from linearity_lab.runs import run_to_end
from linearity_lab.runs.compiled_code import keep_compiled_code


def main(names: list[str]) -> None:
    keep_compiled_code()
    specs = pairs()
    for name in names or specs:
        spec = specs[name]
        path = pair_file(spec)
        if path.exists():
            known = ExploreResult.model_validate_json(gzip.decompress(path.read_bytes()))
            if known.spec == spec and not names:
                continue
        ended = run_to_end(spec, scheduler="")
        if ended.result is None or ended.status != "completed":
            sys.exit(f"{name}: {ended.reason}")
        path.parent.mkdir(exist_ok=True)
        text = ended.result.model_dump_json().encode()
        path.write_bytes(gzip.compress(text, mtime=0))
        print(f"{name}: {ended.result.runtime_s:.1f} s", flush=True)


main(sys.argv[1:])
