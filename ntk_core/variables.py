"""Environment variables of the lab, with bounds."""

import functools
from typing import Literal, get_args, get_origin

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from ntk_core.environment import PREFIX
from ntk_core.errors import InvalidInput


class Settings(BaseSettings):
    """Environment variables ``LINEARITY_LAB_<FIELD>``; empty values count as unset."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    store: str = ""
    """Path of a SQLite file or SQLAlchemy URL of a database; by default a file in the user's data directory."""
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
    """Secret that signs the names of visitors, at least 32 letters; by default a file beside the store."""
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

    @model_validator(mode="before")
    @classmethod
    def _strip(cls, given: dict[str, str]) -> dict[str, str]:
        return {name: value.strip() for name, value in given.items() if value.strip()}


@functools.lru_cache(maxsize=16)
def read(_environment: tuple[tuple[str, str], ...]) -> Settings:
    """Return the settings of ``os.environ``, cached until these variables change."""
    try:
        return Settings()
    except ValidationError as error:
        problem = error.errors()[0]
        name = str(problem["loc"][0])
        raise InvalidInput(PREFIX + name.upper(), problem["input"], _allowed(name)) from None


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
