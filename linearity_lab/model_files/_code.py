"""Models in Python files, which are run with the caller's rights: never from a page."""

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from ntk_core.errors import InvalidInput, reason_of
from ntk_core.linearity import CONTRACT, OwnModel
from ntk_core.markup import shortened
from ntk_core.traced import ModelFails

_MODULE = "_linearity_lab_own_model"
_SHORTEST = 160


class OwnModelError(InvalidInput):
    """Failure of custom code: location, type and message.

    >>> str(OwnModelError("model.py, line 3: NameError: name 'w' is not defined"))
    "model.py, line 3: NameError: name 'w' is not defined"
    """

    def __init__(self, words: str):
        super().__init__("model", words, CONTRACT)
        self.args = (words,)  # the whole sentence

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), self.args)


def load_model(target: str) -> tuple[OwnModel, Path, str]:
    """Load (function, file, name) of ``FILE.py:NAME``; the default name is ``model``.

    The name may also be a single model, (apply, params) or a ``torch.nn.Module``, equal at every
    width. The file is run as Python code with the caller's rights: only the command line and
    notebooks call this.
    """
    target = f"{target}:model" if target.endswith(".py") else target
    file, separator, name = target.rpartition(":")
    if not separator or not file.endswith(".py") or not name.isidentifier():
        raise InvalidInput(
            "FILE.py:NAME", target, "a Python file and a name in it, such as model.py:network"
        )
    path = Path(file)
    if not path.is_file():
        raise InvalidInput("FILE.py:NAME", file, "a file that exists")
    with their_errors(path):
        module = _module(path)
    found = getattr(module, name, None)
    if found is None:
        names = [
            each
            for each, value in vars(module).items()
            if callable(value) and not each.startswith("_")
        ]
        raise InvalidInput(
            "FILE.py:NAME",
            name,
            "one of " + ", ".join(names) if names else f"a name in {path.name}",
        )
    if isinstance(found, tuple) or hasattr(found, "named_parameters"):
        return (lambda width, key: found), path, name
    if not callable(found):
        raise InvalidInput("FILE.py:NAME", f"{name}, {type(found).__name__}", CONTRACT)
    return found, path, name


@contextmanager
def their_errors(path: Path) -> Iterator[None]:
    """Convert errors inside the file, except ``InvalidInput``, to one sentence.

    Line, type, message.
    """
    try:
        yield
    except ModelFails as error:
        # The traceback of the user's own error names the line in the user's file.
        raise OwnModelError(_sentence(error.__cause__ or error, path)) from None
    except InvalidInput:
        raise
    except (Exception, SystemExit) as error:
        raise OwnModelError(_sentence(error, path)) from None


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise InvalidInput("FILE.py:NAME", path.name, "a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module  # dataclasses look up their module
    sys.path.insert(0, str(path.resolve().parent))  # as Python does for a script
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def _sentence(error: BaseException, path: Path) -> str:
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).name == path.name
    ]
    line = frames[-1].lineno if frames else None
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).name == path.name:
        line = error.lineno
    where = f"{path.name}, line {line}" if line else path.name
    return f"{where}: {type(error).__name__}: {shortened(reason_of(error), _SHORTEST)}"
