"""The configuration of a run as Python sees it: the one JSON document that the roles in Go read, too.

What its keys mean and which values they may have is checked by `fray plan` and by the program `fray rl`;
here it is only read.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fray.rl.nexrl_types import NexRLRole

VARIABLE = "FRAY_RL_CONFIG"
"""Names the environment variable that holds the file of the configuration, or the configuration itself."""

DEFAULT_LEASE_TTL = 30.0
"""Seconds after which a loader takes back the tasks of a worker that does not renew its leases."""

_SECTIONS = {
    NexRLRole.ROLLOUT_WORKER: "rollout_worker",
    NexRLRole.TRAIN_WORKER: "train_worker",
    NexRLRole.ALGORITHM_PROCESSOR: "algorithm",
    NexRLRole.TRAJECTORY_POOL: "trajectory_pool",
    NexRLRole.TRAIN_BATCH_POOL: "train_batch_pool",
    NexRLRole.WEIGHT_SYNC_CONTROLLER: "weight",
    NexRLRole.DATA_LOADER: "data",
    NexRLRole.VALIDATE_DATALOADER: "validate.data",
    NexRLRole.VALIDATOR: "validate.eval",
}
_WORKERS = (NexRLRole.ROLLOUT_WORKER, NexRLRole.TRAIN_WORKER)
DEFAULTS: Mapping[str, Any] = {
    "project_name": "nexrl",
    "experiment_name": "run",
    "seed": 0,
    "out": "out/nexrl",
    "logger": {"backend": ["console"]},
    "dump": {},
}
"""Of keys that all sections get, where the configuration has no value: those of the roles in Go."""


class ConfigError(ValueError):
    """The configuration cannot be used; the message has the key and how to fix it."""


class Config(dict[str, Any]):
    """A section of the configuration: a dictionary whose keys are attributes, too.

    config.service.inference_service.url
    config.get("seed", 0)
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        for key, value in self.items():
            self[key] = _wrapped(value)

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key."""
        if name in self:
            return self[name]
        raise AttributeError(f"the configuration has no key {name!r}; it has {', '.join(map(str, self))}")

    def __setattr__(self, name: str, value: Any) -> None:
        """Set the value of a key."""
        self[name] = _wrapped(value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Config:
        return Config(json_like(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Config, (json_like(self),)


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict) and not isinstance(value, Config):
        return Config(value)
    if isinstance(value, list):
        return [_wrapped(each) for each in value]
    return value


def json_like(value: Any) -> Any:
    """Return a section as plain dictionaries and lists."""
    if isinstance(value, Mapping):
        return {key: json_like(each) for key, each in value.items()}
    return [json_like(each) for each in value] if isinstance(value, list) else value


def setting(config: Any, path: str, default: Any = None) -> Any:
    """Return the value of a dotted path such as "service.url", the default where it is missing or null.

    The configuration may be a mapping or have attributes, as those of other libraries do.
    """
    for name in path.split("."):
        config = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
        if config is None:
            return default
    return config


def load(text: str | None = None) -> Config:
    """Return the configuration of a file, or that of JSON itself; None: of FRAY_RL_CONFIG.

    Raises:
        ConfigError: there is none, or it is no JSON object.
    """
    given = os.environ.get(VARIABLE, "") if text is None else text
    if not given.strip():
        raise ConfigError(
            f"there is no configuration: give --config FILE, or set {VARIABLE} to a file or to JSON"
        )
    where = VARIABLE if text is None else "--config"
    if not given.lstrip().startswith("{"):
        where = given
        try:
            given = Path(given).read_text()
        except OSError as err:
            raise ConfigError(f"cannot read the configuration {where}: {err.strerror}") from err
    try:
        value = json.loads(given)
    except json.JSONDecodeError as err:
        raise ConfigError(f"{where}:{err.lineno}:{err.colno}: {err.msg}") from err
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: the configuration is a JSON object, not {type(value).__name__}")
    return Config(value)


def section_of(config: Mapping[str, Any], role: NexRLRole) -> Config:
    """Return what the class of a role is made with: its own section and what else it needs of the others.

    Each has the run's `project_name`, `experiment_name`, `seed`, `out`, `logger` and `dump`, the services as
    `inference_service` and `train_service`, and of the trajectory pool `key_list`, `group_size` and
    `batch_size` where its section lacks them.
    """
    found = Config(json_like(setting(config, _SECTIONS[role], {})))
    for key, default in DEFAULTS.items():
        found.setdefault(key, _wrapped(setting(config, key, default)))
    for key in ("inference_service", "train_service"):
        found.setdefault(key, _wrapped(setting(config, f"service.{key}", {})))
    if role in (NexRLRole.ROLLOUT_WORKER, NexRLRole.ALGORITHM_PROCESSOR):
        for key in ("key_list", "group_size", "batch_size"):
            if (value := setting(config, f"trajectory_pool.{key}")) is not None:
                found.setdefault(key, _wrapped(value))
    found.setdefault("lease_ttl", setting(config, "data.lease_ttl", DEFAULT_LEASE_TTL))
    return found


def count_of(config: Mapping[str, Any], role: NexRLRole) -> int:
    """Return how many actors a role has: `roles.ROLE.count`, else `num_workers` of workers, else 1."""
    declared = setting(config, f"roles.{role.value}.count")
    if declared is None and role in _WORKERS:
        declared = setting(config, f"{_SECTIONS[role]}.num_workers")
    return 1 if declared is None else int(declared)


def class_of(path: str, key: str) -> Callable[..., Any]:
    """Return the class of a "module:Class".

    Raises:
        ConfigError: it has another form, or cannot be imported. The message names `key`.
    """
    module, colon, name = path.partition(":")
    if not colon or not module or not name:
        raise ConfigError(f'{key}: "{path}" names no class; write it as "module:Class"')
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as err:
        raise ConfigError(f'{key}: "{path}" cannot be imported: {err}') from err
    if not callable(found):
        raise ConfigError(f'{key}: "{path}" is no class but {type(found).__name__}')
    kind: Callable[..., Any] = found
    return kind
