"""Hosts the roles of a run that are classes of Python, several in one process.

All of them are actors of one server, under the names of their roles. They find each other by these names,
also after a restart elsewhere. Where a role is not started here, it is an actor of the program `fray rl`.
"""

from __future__ import annotations

import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fray.rl.config import (
    DEFAULT_LEASE_TTL,
    DEFAULTS,
    Config,
    ConfigError,
    class_of,
    count_of,
    section_of,
    setting,
)
from fray.rl.ended import end_of
from fray.rl.hosts import actor_of
from fray.rl.nexrl_types import NexRLRole
from fray.rl.references import (
    RESOLVE_TIMEOUT,
    TrainBatchPool,
    TrajectoryPool,
    WeightSyncController,
    data_loader_of,
    validator_of,
)
from fray.rl.tracking import ActivityTrackerProxy

if TYPE_CHECKING:
    from fray.cluster.protocols import Cluster
    from fray.rpc.resolver import Resolver

_log = logging.getLogger("fray.rl")

INDEXED = ("rollout_worker", "train_worker", "algorithm_processor", "train_service", "inference_service")
"""Roles whose actors have an index in their names, also where there is one."""

OTHERS = ("train_service", "inference_service", "experiment_logger")
"""Roles that a run may have besides those of NexRLRole, and Python may host."""

_TYPES: dict[str, dict[str, str]] = {
    "rollout_worker": {
        "mock": "fray.rl.mock:MockRolloutWorker",
        "simple": "fray.rl.simple:SimpleRolloutWorker",
        "agent": "fray.rl.agent:AgentRolloutWorker",
        "single_turn_math": "fray.rl.single_turn:SingleTurnMathRolloutWorker",
    },
    "algorithm_processor": {
        "mock": "fray.rl.mock:MockAlgorithmProcessor",
        "grpo": "fray.rl.algorithms.grpo:GRPOProcessor",
    },
    "train_worker": {"default": "fray.rl.train.worker:TrainWorker"},
    "data_loader": {"mock": "fray.rl.data:MockDataLoader", "jsonl": "fray.rl.data:JsonlDataLoader"},
    "validate_dataloader": {"mock": "fray.rl.data:MockDataLoader", "jsonl": "fray.rl.data:JsonlDataLoader"},
    "validator": {"default": "fray.rl.validator:Validator"},
    "experiment_logger": {"wandb": "fray.rl.experiment:WandbLogger"},
}
KEYS: dict[str, tuple[str, str]] = {
    "rollout_worker": ("rollout_worker.type", "simple"),
    "algorithm_processor": ("algorithm.type", "grpo"),
    "train_worker": ("train_worker.type", "default"),
    "trajectory_pool": ("trajectory_pool.type", "default"),
    "train_batch_pool": ("train_batch_pool.type", "default"),
    "weight_sync_controller": ("weight.type", "default"),
    "data_loader": ("data.type", "mock"),
    "validate_dataloader": ("validate.data.type", "mock"),
    "validator": ("validate.eval.type", "default"),
    "train_service": ("service.train_service.class", ""),
    "inference_service": ("service.inference_service.class", ""),
    "experiment_logger": ("", "wandb"),
}
"""Of each role that Python may host: the key that names its class, and the default."""

_CONCURRENCY = 64  # calls at once; what must not run beside itself has locks of its own
_HEARTBEAT = 5.0  # seconds, or less where leases are short
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0  # seconds between two tries to reach an actor
_WAIT = 20.0  # seconds that the controller may take to answer whether the run has ended


@dataclass(frozen=True)
class Place:
    """One actor of a role."""

    role: str
    index: int = 0

    def name(self, config: Mapping[str, Any]) -> str:
        """Return the actor's name."""
        several = self.role == "trajectory_pool" and count_of(config, NexRLRole.TRAJECTORY_POOL) > 1
        return f"{self.role}_{self.index}" if self.role in INDEXED or several else self.role


def places_of(words: Sequence[str], config: Mapping[str, Any]) -> list[Place]:
    """Return the actors that words such as "rollout_worker:3" name; without an index all of the role.

    Raises:
        ConfigError: there is no such role, or it has no actor of the index.
    """
    found: list[Place] = []
    for word in words:
        role, colon, index = word.partition(":")
        if role not in KEYS:
            raise ConfigError(f'"{role}" is no role that Python hosts; these are {", ".join(KEYS)}')
        count = count_of(config, NexRLRole(role)) if role not in OTHERS else _count_of_other(config, role)
        if not colon:
            found += [Place(role, i) for i in range(count)]
            continue
        if not index.isdecimal() or int(index) >= count:
            raise ConfigError(f'"{word}": role {role} has the indices 0 to {count - 1}')
        found.append(Place(role, int(index)))
    if len(set(found)) != len(found):
        raise ConfigError(f"a role is named twice: {' '.join(words)}")
    return found


def _count_of_other(config: Mapping[str, Any], role: str) -> int:
    return int(setting(config, f"roles.{role}.count", 1))


def make(place: Place, config: Config) -> tuple[Any, Any]:
    """Return the object of a role and the section that it was made with.

    Raises:
        ConfigError: its class cannot be imported, or the type of the role is one of the program `fray rl`.
    """
    key, default = KEYS[place.role]
    named = str(setting(config, key, default) if key else default)
    path = _TYPES.get(place.role, {}).get(named, named)
    if ":" not in path:
        if not named:
            raise ConfigError(f'{key} is missing: the class that role {place.role} hosts, as "module:Class"')
        hint = 'write a class as "module:Class", or host the role by the program "fray rl"'
        raise ConfigError(f'{key} = "{named}" is no class of Python; {hint}')
    kind = class_of(path, key or place.role)
    section = _section(place.role, config)
    if not _takes_config(kind):
        return kind(), section
    if place.role == "validate_dataloader":
        return kind(section, is_validate=True), section
    return kind(section), section


def _section(role: str, config: Config) -> Any:
    if role == "experiment_logger":
        return config
    if role in OTHERS:
        section = Config(setting(config, f"service.{role}", {}))
        return Config({**section, **{key: setting(config, key, DEFAULTS[key]) for key in ("seed", "out")}})
    return section_of(config, NexRLRole(role))


def _takes_config(kind: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)


class Wiring:
    """Finds the actors of a run for its modules."""

    def __init__(self, config: Config, resolver: Resolver) -> None:
        self._config, self._resolver = config, resolver

    def handle(self, name: str) -> Any:
        """Return a handle of an actor, which need not be there yet."""
        return self._resolver.handle(name)

    def trajectory_pool(self) -> TrajectoryPool:
        """Return the pool, of all its actors."""
        count = count_of(self._config, NexRLRole.TRAJECTORY_POOL)
        places = [Place("trajectory_pool", i) for i in range(count)]
        keys = setting(self._config, "trajectory_pool.key_list", ())
        return TrajectoryPool([self.handle(place.name(self._config)) for place in places], keys)

    def references(self, role: str) -> dict[str, Any]:
        """Return what `set_module_references` of a role may be given, by the names of its parameters."""
        train_batch_pool = TrainBatchPool(self.handle("train_batch_pool"))
        weights = WeightSyncController(self.handle("weight_sync_controller"))
        loader = data_loader_of(self.handle("data_loader"))
        validates = bool(setting(self._config, "validate.data.type"))
        validate_loader = data_loader_of(self.handle("validate_dataloader")) if validates else None
        found: dict[str, Any] = {
            "trajectory_pool": self.trajectory_pool(),
            "train_batch_pool": train_batch_pool,
            "weight_sync_controller": weights,
            "dataloader": loader,
            "data_loader": loader,
            "validate_dataloader": validate_loader,
            "validator": validator_of(self.handle("validator")) if validates else None,
            "controller": self.handle("controller"),
        }
        if setting(self._config, "service.train_service.class"):
            found["train_service"] = self.handle("train_service_0")
        found.pop(role, None)
        return found

    def wire(self, role: str, module: Any, tracker: ActivityTrackerProxy) -> None:
        """Set a module's references, those that it has parameters for."""
        found = {**self.references(role), "activity_tracker": tracker}
        if (setter := getattr(module, "set_module_references", None)) is not None:
            names = inspect.signature(setter).parameters
            setter(**{name: found[name] for name in names if name in found})
        if (setter := getattr(module, "set_activity_tracker", None)) is not None:
            setter(tracker)


@dataclass
class _Module:
    """A module that is hosted."""

    place: Place
    name: str
    value: Any
    tracker: ActivityTrackerProxy


class Hosting:
    """Modules of one process, hosted as actors."""

    def __init__(self, config: Config, places: Iterable[Place], cluster: Cluster) -> None:
        """Make the modules and begin to serve them.

        Raises:
            ConfigError: a class cannot be imported, or a role is not Python's.
        """
        from fray._host_serve import HostCluster
        from fray.rpc.resolver import ClusterResolver
        from fray.rpc.server import ActorServer

        self._config = config
        self._over = threading.Event()
        self._run = str(setting(config, "run", ""))  # else as the controller's answer has it
        self.has_ended = False
        """Whether the run has ended, and not this process alone."""
        self.failure: Exception | None = None
        wiring = Wiring(config, ClusterResolver(cluster))
        self._modules = [self._made(place, wiring) for place in places]
        hosted = HostCluster(cluster, self._rejected)
        self._server = ActorServer(cast("Any", hosted), host=_own_address())
        self._server.serve_background()
        for module, section in self._modules:
            role = module.place.role
            value = module.value
            if role not in OTHERS:
                value = actor_of(NexRLRole(role), value, section)
            self._server.register(module.name, value, max_concurrency=_CONCURRENCY)
        self._controller = wiring.handle("controller").options(
            idempotent=True, resolve_timeout=RESOLVE_TIMEOUT
        )
        for work in (self._announce, self._beat, self._await_end):
            threading.Thread(target=work, name=f"fray.rl {work.__name__}", daemon=True).start()

    @property
    def names(self) -> list[str]:
        """The names of the actors."""
        return [module.name for module, _ in self._modules]

    @property
    def address(self) -> str:
        """Where they are, host:port."""
        return self._server.address

    def end(self) -> None:
        """Have `wait` return; from any thread or a handler of a signal."""
        self._over.set()

    def wait(self) -> None:
        """Wait for `end`, or the end of the run; stop the modules, and answer what was asked."""
        while not self._over.wait(0.5):
            pass
        self.stop()

    def stop(self) -> None:
        """Stop the modules: current tasks end or are put back; then leave the cluster."""
        self._over.set()
        threads = [threading.Thread(target=self._stop_module, args=(module,)) for module, _ in self._modules]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._server.shutdown()

    def _made(self, place: Place, wiring: Wiring) -> tuple[_Module, Any]:
        value, section = make(place, self._config)
        name = place.name(self._config)
        tracker = ActivityTrackerProxy(wiring.handle("activity_tracker"), getattr(value, "_incarnation", ""))
        if (setter := getattr(value, "set_module_name", None)) is not None:
            setter(name)
        wiring.wire(place.role, value, tracker)
        return _Module(place, name, value, tracker), section

    def _stop_module(self, module: _Module) -> None:
        stop = getattr(module.value, "stop", None)
        if stop is None:
            return
        try:
            stop()
        except Exception as err:
            _log.warning("%s could not be stopped: %s", module.name, err, exc_info=True)

    def _announce(self) -> None:
        """Register the modules with the activity tracker, as soon as that is there."""
        for module, _ in self._modules:
            pause = _FIRST_PAUSE
            while not self._over.is_set():
                try:
                    rollout = module.place.role == "rollout_worker"
                    module.tracker.register_module(module.name, self._server.address, rollout)
                    break
                except Exception as err:
                    _log.info("%s waits for the activity tracker: %s", module.name, err)
                    self._over.wait(pause)
                    pause = min(_LONGEST_PAUSE, pause * 2)

    def _beat(self) -> None:
        """Have the activity tracker know that the modules live."""
        ttl = float(setting(self._config, "data.lease_ttl", DEFAULT_LEASE_TTL))
        while not self._over.wait(min(_HEARTBEAT, ttl / 3)):
            for module, _ in self._modules:
                try:
                    module.tracker.beat(module.name)
                except Exception as err:
                    _log.info("%s: no heartbeat at the activity tracker: %s", module.name, err)

    def _await_end(self) -> None:
        """End once the controller answers that the run has ended, or its end is recorded.

        A controller that does not answer was killed, or is not there yet: the run goes on with the next one.
        """
        pause = _FIRST_PAUSE
        while not self._over.is_set():
            try:
                status = self._controller.wait_ended(_WAIT)
            except Exception as err:
                _log.debug("whether the run has ended is not known: %s", err)
                if self._is_recorded():
                    return
                self._over.wait(pause)
                pause = min(_LONGEST_PAUSE, pause * 2)
                continue
            pause = _FIRST_PAUSE
            self._run = status.get("run") or self._run
            if status.get("ended"):
                self._end_with_run(status.get("reason") or "")
            else:
                self._over.wait(pause)  # a controller that ends answers at once

    def _is_recorded(self) -> bool:
        """End if the end of the run is recorded, and return whether it is."""
        try:
            end = end_of(self._config, self._run)
        except ConfigError as err:
            _log.warning("%s", err)
            return False
        if end is not None:
            self._end_with_run(end.reason)
        return end is not None

    def _end_with_run(self, reason: str) -> None:
        _log.info("the run has ended: %s", reason)
        self.has_ended = True
        self.end()

    def _rejected(self, err: Exception) -> None:
        self.failure = err
        sys.stderr.write(f"fray.rl: the actors cannot be registered: {err}\n")
        self._over.set()


def _own_address() -> str:
    """Return where to listen: on this machine's slices, which share it, at the address of their own."""
    address = os.environ.get("FRAY_HOST_ADDRESS", "")
    return address if address.startswith("127.") else "0.0.0.0"
