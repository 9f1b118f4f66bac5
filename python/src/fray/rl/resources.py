"""The modules of a run as actors that a program creates: the interface of RayResourceManager, over fray.v2.

Roles of one colocation group share processes: their first actors are one process, their second ones another.
In such a process each role is an object of its own; its methods have the role before their names, which
wrappers hide.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fray.rl.config import json_like, setting
from fray.rl.hosts import actor_of
from fray.rl.nexrl_types import NexRLRole
from fray.rpc import method

if TYPE_CHECKING:
    from fray.cluster import ResourceConfig
    from fray.rpc.handle import ActorHandle
    from fray.v2.actor import ActorGroup
    from fray.v2.client import Client

_HEALTH = "health"
_SEPARATOR = "__"
_CALLS = 64  # of one role at once
_ENDING = 120.0  # seconds for which the end of an actor is awaited


class ResourceError(ValueError):
    """Roles cannot be created as they were registered."""


@dataclass(frozen=True)
class _Registration:
    role: NexRLRole
    cls: type
    config: Any
    count: int
    group: str | None


class ActorWrapper:
    """An actor of one role. Its attributes are the methods of the role's class, as those of a handle are.

    wrapper.put_trajectory(trajectory)
    future = execute_async(wrapper.run)
    """

    wraps_actor = True

    def __init__(
        self, actor: ActorHandle[Any], actor_class: type, role: NexRLRole, is_colocated: bool = True
    ) -> None:
        """Wrap a handle.

        Args:
            actor: Of the process that the role is in.
            actor_class: The class of the role.
            role: The role.
            is_colocated: Whether the process has other roles too, so that the methods' names have this one's.
        """
        self._actor, self._class, self._role, self._colocated = actor, actor_class, role, is_colocated

    def __getattr__(self, name: str) -> Any:
        """Return a method."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self._actor[f"{self._role.value}{_SEPARATOR}{name}" if self._colocated else name]

    @property
    def role(self) -> NexRLRole:
        """The role."""
        return self._role

    @property
    def address(self) -> str:
        """Where the actor is, host:port."""
        return self._actor.address

    def options(self, **options: Any) -> ActorWrapper:
        """Return a wrapper whose calls have other options, see RpcOptions."""
        return ActorWrapper(self._actor.options(**options), self._class, self._role, self._colocated)

    def __reduce__(self) -> tuple[Any, ...]:
        return ActorWrapper, (self._actor, self._class, self._role, self._colocated)

    def __repr__(self) -> str:
        return f"<ActorWrapper {self._role.value} of {self._actor!r}>"


class ResourceManager:
    """Creates the actors of roles, those of one colocation group together.

    manager = ResourceManager()
    manager.register_role(NexRLRole.ROLLOUT_WORKER, MyWorker, config.rollout_worker, 4, "rollout")
    manager.create_all_actors()
    workers = manager.get_actor_wrapper(NexRLRole.ROLLOUT_WORKER)
    """

    def __init__(self, client: Client | None = None) -> None:
        """Use a client; None: the current one when the actors are created.

        That is a LocalClient, or what FRAY_CLIENT_SPEC names: fray://HOST:PORT, ray:auto and others.
        """
        self._client = client
        self._roles: dict[NexRLRole, _Registration] = {}
        self._wrappers: dict[NexRLRole, list[ActorWrapper]] = {}

    def register_role(
        self, role: NexRLRole, cls: type, config: Any, count: int, colocation_group: str | None = None
    ) -> None:
        """Note which actors a role is to have.

        Args:
            role: The role, once.
            cls: Makes an object of it, called with the configuration.
            config: The role's section. `resources` in it is what each actor needs: the fields of
                fray.cluster.ResourceConfig, and as its device `tpu`, a type such as "v5litepod-8", or `gpu`
                with `type` ("auto") and `count` (1).
            count: How many actors.
            colocation_group: Roles of one group share actors; None: the role has actors of its own.

        Raises:
            ResourceError: the role is registered already, or `count` is less than 1.
        """
        if role in self._roles:
            raise ResourceError(f"role {role.value} is registered already")
        if count < 1:
            raise ResourceError(f"role {role.value} has {count} actors; it needs at least one")
        self._roles[role] = _Registration(role, cls, config, count, colocation_group)

    def create_all_actors(self) -> None:
        """Create the actors of all roles, and return once they answer. Created roles are not created again.

        All are requested before any is waited for, so that a cluster that grows knows of all of them. If one
        cannot be created, those that were requested by this call are ended, and it may be called again.

        Raises:
            ResourceError: roles of one colocation group have different counts, or ask for resources that
                cannot be summed.
            ActorCreationError: a constructor raised, or the job that was to host an actor ended.
        """
        groups = self._groups()
        for roles in groups:
            if len({role.count for role in roles}) > 1:
                counts = ", ".join(f"{role.role.value} has {role.count}" for role in roles)
                raise ResourceError(
                    f'roles of colocation group "{roles[0].group}" have different counts: {counts}; '
                    "give them the same"
                )
        missing = [roles for roles in groups if self._is_missing(roles)]
        asked = [_resources(roles) for roles in missing]  # their errors come before any actor is there
        made: list[ActorGroup[Any]] = []
        try:
            for roles, resources in zip(missing, asked, strict=True):
                made.append(self._request(roles, resources))
            ready = [group.wait_ready() for group in made]
        except BaseException:
            _end(made)
            raise
        for roles, handles in zip(missing, ready, strict=True):
            colocated = len(roles) > 1
            for role in roles:
                self._wrappers[role.role] = [
                    ActorWrapper(handle, role.cls, role.role, colocated) for handle in handles
                ]

    def get_actor_wrapper(self, role: NexRLRole) -> list[Any]:
        """Return what calls the actors of a role, in order; none for a role that has none."""
        return list(self._wrappers.get(role, ()))

    def _is_missing(self, roles: Sequence[_Registration]) -> bool:
        """Return whether actors of these roles, which share them, are still to be created.

        Raises:
            ResourceError: they are there, and a role of the group was registered since.
        """
        created = [role.role in self._wrappers for role in roles]
        if any(created) and not all(created):
            late = next(role.role.value for role, there in zip(roles, created, strict=True) if not there)
            raise ResourceError(
                f'role {late} came to colocation group "{roles[0].group}" after its actors were created; '
                "register all roles of a group before create_all_actors"
            )
        return not all(created)

    def _groups(self) -> list[list[_Registration]]:
        found: dict[Any, list[_Registration]] = {}
        for role in self._roles.values():
            found.setdefault(role.group if role.group is not None else role.role, []).append(role)
        return list(found.values())

    def _request(self, roles: Sequence[_Registration], resources: ResourceConfig) -> ActorGroup[Any]:
        from fray.v2 import ActorOptions, current_client

        client = self._client or current_client()
        limits = {role.role.value: _CALLS for role in roles}
        return client.create_actor_group(
            colocated_class([(role.role, role.cls) for role in roles], prefixed=len(roles) > 1),
            [json_like(role.config) for role in roles],
            name=roles[0].group or roles[0].role.value,
            count=roles[0].count,
            resources=resources,
            options=ActorOptions(max_concurrency=_CALLS, concurrency_groups={**limits, _HEALTH: _CALLS}),
        )


def _end(groups: Sequence[ActorGroup[Any]]) -> None:
    """End actors, and wait until their names are free. The error that led here is the one to report."""
    for group in groups:
        with contextlib.suppress(Exception):
            group.terminate()
    for job in (job for group in groups for job in group.jobs):
        with contextlib.suppress(Exception):
            job.wait(_ENDING, raise_on_failure=False)


def colocated_class(roles: Sequence[tuple[NexRLRole, type]], prefixed: bool = True) -> type:
    """Return a class whose objects have one object of each role; it is made with the roles' configurations.

    Args:
        roles: Each role with its class.
        prefixed: Whether the methods have the name of the role before theirs, as "rollout_worker__run".
    """

    def __init__(self: Any, configs: Sequence[Any]) -> None:  # noqa: N807 - it becomes that of the class
        self._objects = {
            role.value: _made(role, cls, config) for (role, cls), config in zip(roles, configs, strict=True)
        }

    namespace: dict[str, Any] = {"__init__": __init__}
    for role, cls in roles:
        for name in _methods(role, cls):
            public = f"{role.value}{_SEPARATOR}{name}" if prefixed else name
            group = _HEALTH if name == "health_check" else role.value
            namespace[public] = method(concurrency_group=group)(_forwarder(role.value, name, public))
    return type("Colocated" if prefixed else roles[0][1].__name__, (), namespace)


def _made(role: NexRLRole, cls: Callable[..., Any], config: Any) -> Any:
    from fray.rl.config import Config

    section = Config(config) if isinstance(config, Mapping) else config
    return actor_of(role, cls(section), section)


def _methods(role: NexRLRole, cls: type) -> list[str]:
    """Return the names of the public methods that actors of a role have."""
    from fray.rl.hosts import host_of

    kinds = (cls, host_of(role, cls))
    names = {name for kind in kinds for name, _ in inspect.getmembers(kind, inspect.isroutine)}
    return sorted(name for name in names if not name.startswith("_"))


def _forwarder(role: str, name: str, public: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._objects[role], name)(*args, **kwargs)

    forward.__name__ = public
    return forward


def _resources(roles: Sequence[_Registration]) -> ResourceConfig:
    """Return what an actor of roles needs: the sum of their processors, else what one of them asks for."""
    from fray.cluster import ResourceConfig

    asked = [dict(setting(role.config, "resources", {})) for role in roles]
    asked = [each for each in asked if each]
    if not asked:
        return ResourceConfig()
    merged: dict[str, Any] = {}
    for each in asked:
        for key, value in each.items():
            if key == "cpu":
                merged[key] = merged.get(key, 0) + value
            elif merged.setdefault(key, value) != value:
                raise ResourceError(
                    f"roles of one colocation group ask for different {key}: {merged[key]} and {value}; "
                    "give it to one of them, for all"
                )
    try:
        device = _device(merged.pop("tpu", None), merged.pop("gpu", None))
        return ResourceConfig(**merged, **device)
    except (TypeError, ValueError) as err:
        named = ", ".join(role.role.value for role in roles)
        raise ResourceError(f"resources of {named}: {err}") from err


def _device(tpu: str | None, gpu: Mapping[str, Any] | None) -> dict[str, Any]:
    from fray.cluster import GpuConfig, TpuConfig

    if tpu and gpu:
        raise ValueError("tpu and gpu are asked for; leave one out")
    if tpu:
        return {"device": TpuConfig(tpu)}
    return {"device": GpuConfig(**gpu)} if gpu else {}


RayResourceManager, RayActorWrapper = ResourceManager, ActorWrapper
"""The names that programs written for NexRL import."""
