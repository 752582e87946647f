"""Environment variables of the lab, with bounds."""

import functools
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Literal, get_args, get_origin

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from linearity_lab.variable_names import MIN_KEY, OF_COMPOSE, PREFIX
from ntk_core.errors import InvalidInput, UnknownSetting

CACHE_OFF = "off"
SCHEDULER_ADDRESS = re.compile(r"(tcp|tls)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
HOST_NAME = re.compile(r"\*|(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*|\[[0-9A-Fa-f:.]+\]")
FRAME_ORIGIN = re.compile(r"https?://(\*\.)?[A-Za-z0-9.-]+(:\d{1,5})?")
# Kubernetes sets these in every pod beside a service named linearity-lab or linearity-lab-….
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_KUBERNETES = re.compile(
    r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+")
_SEPARATORS = re.compile(r"[,\s]+")


class Settings(BaseSettings):
    """Environment variables ``LINEARITY_LAB_<FIELD>``; empty values count as unset."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    store: str = ""
    """Path of a SQLite file or SQLAlchemy URL of a database;
    by default a file in the user's data directory.
    """
    store_bytes: int = Field(default=2_000_000_000, ge=1_000_000, le=10**15)
    """Limit of the store, in bytes."""
    cache: str = ""
    """Directory of compiled code, or ``off``."""
    data: str = ""
    """Folder with the full image sets."""
    memory_gib: float | None = Field(default=None, gt=0, lt=1e6)
    """Memory that a run may use, in GiB."""
    devices: int | None = Field(default=None, ge=1, le=9999)
    """Devices that one point uses."""
    scheduler: str = ""
    """Address of a dask scheduler."""
    worker_wait_s: float = Field(default=60.0, ge=0, le=86_400)
    """How long a run waits for the first worker of a cluster, in seconds."""
    profile: Literal["local", "classroom", "hosted"] = "local"
    """Users of the server: its owner, a class, everyone."""
    workers: int | None = Field(default=None, ge=1, le=64)
    """Worker processes of the server."""
    cookie_key: str = ""
    """Secret that signs the names of visitors, at least 32 letters;
    by default a file beside the store.
    """
    hosts: str = ""
    """Names under which the server answers."""
    frame_ancestors: str = ""
    """Origins whose pages may show the server in a frame."""
    max_width: int | None = Field(default=None, ge=1, le=10**9)
    max_seeds: int | None = Field(default=None, ge=1, le=10**9)
    max_seconds: int | None = Field(default=None, ge=1, le=10**9)
    max_result_mib: int | None = Field(default=None, ge=1, le=10**9)
    max_upload_mib: int | None = Field(default=None, ge=1, le=10**9)
    max_waiting: int | None = Field(default=None, ge=1, le=10**9)
    max_job_seconds: int | None = Field(default=None, ge=1, le=10**9)

    @property
    def host_names(self) -> tuple[str, ...]:
        """Names in ``hosts``, or ``*``."""
        return tuple(name for name in _SEPARATORS.split(self.hosts) if name)

    @property
    def frame_origins(self) -> tuple[str, ...]:
        """Origins in ``frame_ancestors``."""
        return tuple(origin for origin in _SEPARATORS.split(self.frame_ancestors) if origin)

    @model_validator(mode="before")
    @classmethod
    def _strip(cls, given: dict[str, str]) -> dict[str, str]:
        return {name: value.strip() for name, value in given.items() if value.strip()}


def current() -> Settings:
    """Return the settings of the environment; raises as :func:`read`."""
    given = [(name, value) for name, value in os.environ.items() if _has_prefix(name)]
    return read(tuple(sorted(given)))


def _has_prefix(name: str) -> bool:
    # Pydantic would read names in small letters, too; direct readers of the environment would not.
    return name.upper().startswith(PREFIX)


@functools.lru_cache(maxsize=16)
def read(_environment: tuple[tuple[str, str], ...]) -> Settings:
    """Return the settings of ``os.environ``, cached until these variables change.

    Raises:
        InvalidInput: for a wrong value or an unknown name; the error names the variable.
    """
    for name, value in _environment:
        if name != name.upper():
            raise InvalidInput(name, "a name with small letters", name.upper())
        if not _is_known(name.removeprefix(PREFIX), value):
            known = sorted({each.upper() for each in Settings.model_fields} | OF_COMPOSE)
            raise UnknownSetting.among(name, value, [PREFIX + each for each in known])
    try:
        given = Settings()
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        raise InvalidInput(PREFIX + name.upper(), problem["input"], _allowed(name)) from None
    _check_texts(given)
    return given


def _is_known(name: str, value: str) -> bool:
    """Whether a variable, without its prefix, is a known one.

    It belongs to the lab, to compose.yaml or to Kubernetes.
    """
    if name.lower() in Settings.model_fields or name in OF_COMPOSE:
        return True
    if _OF_KUBERNETES.fullmatch(name):
        return True
    is_port = name == "PORT" or name.endswith("_PORT")
    return is_port and _SERVICE_ADDRESS.fullmatch(value) is not None


def _check_texts(given: Settings) -> None:
    """Check the settings that are texts with a form."""
    hosts_allowed = "names such as lab.example.org, separated by commas, or *"
    _check_each("HOSTS", given.host_names, HOST_NAME, hosts_allowed)
    frames_allowed = "origins such as https://huggingface.co, separated by commas"
    _check_each("FRAME_ANCESTORS", given.frame_origins, FRAME_ORIGIN, frames_allowed)
    if given.cookie_key and len(given.cookie_key) < MIN_KEY:
        # The key itself is a secret.
        length = f"a key of {len(given.cookie_key)} letters"
        raise InvalidInput(f"{PREFIX}COOKIE_KEY", length, f"at least {MIN_KEY} random letters")
    check_scheduler(f"{PREFIX}SCHEDULER", given.scheduler)
    if given.data and not Path(given.data).expanduser().is_dir():
        raise InvalidInput(f"{PREFIX}DATA", given.data, "the path of an existing folder")
    is_cached = given.cache and given.cache.lower() != CACHE_OFF
    if is_cached and not Path(given.cache).expanduser().is_absolute():
        allowed = f"the absolute path of a directory that can be written, or {CACHE_OFF}"
        raise InvalidInput(f"{PREFIX}CACHE", given.cache, allowed)


def _check_each(name: str, texts: Collection[str], form: re.Pattern[str], allowed: str) -> None:
    """Require the same form of every text in a list."""
    for text in texts:
        if not form.fullmatch(text):
            raise InvalidInput(PREFIX + name, text, allowed)


def check_scheduler(field: str, address: str) -> None:
    """Require the address of a dask scheduler, or an empty text.

    Raises:
        InvalidInput: for anything else, under the name ``field``.
    """
    if not address:
        return
    found = SCHEDULER_ADDRESS.fullmatch(address)
    if found is None or not 1 <= int(found[3]) <= 65_535:
        allowed = "the address of a dask scheduler, such as tcp://192.168.0.10:8786"
        raise InvalidInput(field, address, allowed)


def _allowed(name: str) -> str:
    """Describe the allowed values of a setting."""
    field = Settings.model_fields[name]
    bounds = {
        type(each).__name__: getattr(each, type(each).__name__.lower()) for each in field.metadata
    }
    if choices := get_args(field.annotation) if get_origin(field.annotation) is Literal else ():
        return "one of " + ", ".join(choices)
    if "Gt" in bounds:
        return f"a number above {bounds['Gt']} (GiB)"
    kind = "a number" if field.annotation is float else "an integer"
    return f"{kind} from {bounds['Ge']:,} to {bounds['Le']:,}"
