"""A class with how its actors are created: no argument of its constructor is taken for an option."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from fray.cluster import EnvironmentConfig, ResourceConfig
from fray.v2.client import Client, current_client, spec_of
from fray.v2.options import ActorOptions, Lifetime

if TYPE_CHECKING:
    from fray.rpc.handle import ActorHandle

T = TypeVar("T")
_UNSET: Any = object()


class Actor(Generic[T]):
    """A class whose actors are created with what `options` was given.

        counter = Actor(Counter).options(name="counter", max_restarts=3).remote(40)

    All arguments of `remote` go to the constructor, whatever their names are.
    """

    def __init__(self, actor_class: Callable[..., T], /, client: Client | None = None) -> None:
        """Use a client; None: the one that is current when an actor is created."""
        self._class, self._client = actor_class, client
        self._name: str | None = None
        self._resources = ResourceConfig()
        self._options = ActorOptions()

    def options(
        self,
        *,
        name: str | None = _UNSET,
        resources: ResourceConfig = _UNSET,
        environment: EnvironmentConfig | None = _UNSET,
        get_if_exists: bool = _UNSET,
        lifetime: Literal["non_detached", "detached"] | Lifetime = _UNSET,
        max_restarts: int = _UNSET,
        max_concurrency: int | None = _UNSET,
        concurrency_groups: Mapping[str, int] = _UNSET,
    ) -> Actor[T]:
        """Return the class with these options changed, see ActorOptions and Client.create_actor.

        Raises:
            TypeError: there is no such option, or the value has another type.
            ValueError: the value is not allowed.
        """
        given: dict[str, Any] = {
            "environment": environment,
            "get_if_exists": get_if_exists,
            "lifetime": lifetime,
            "max_restarts": max_restarts,
            "max_concurrency": max_concurrency,
            "concurrency_groups": concurrency_groups,
        }
        changed = Actor(self._class, self._client)
        changed._name = self._name if name is _UNSET else name
        changed._resources = self._resources if resources is _UNSET else resources
        changed._options = replace(self._options, **{k: v for k, v in given.items() if v is not _UNSET})
        return changed

    def remote(self, /, *args: Any, **kwargs: Any) -> ActorHandle[T]:
        """Create an actor with these arguments, see Client.create_actor."""
        client: Any = self._client or current_client()
        spec = spec_of(self._class, args, kwargs, self._name, self._resources, self._options, as_given=True)
        handle: ActorHandle[T] = client.create(spec)
        return handle
