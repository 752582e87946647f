"""What ``own_model`` costs is asked before anything is computed, and has no answer: that is the refusal."""

from typing import NoReturn

from ntk_core.errors import InvalidInput
from ntk_core.experiments.own_model.spec import OwnModelSpec


def counts(spec: OwnModelSpec, key: str, most: bool = False) -> NoReturn:
    """No page, job, upload or spec gets further: they hold no code, and none is run for them."""
    command = f"`python -m ntk_core own {spec.file}` in a terminal: only this command runs your own files"
    raise InvalidInput("experiment", spec.experiment, command)
