"""Many actors as one: calls are spread over them, or go to all.

    pool = RoundRobin(resolver, "inference_pool")
    answers = [pool.predict.remote(batch) for batch in batches]

A pool of a resolver's name follows what is registered under it. Retries are left to the calls.
"""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fray.cluster.errors import ActorNotFoundError

if TYPE_CHECKING:
    from fray.rpc._calling.resolve import Endpoint
    from fray.rpc._calling.route import Route
    from fray.rpc.future import ActorFuture
    from fray.rpc.handle import ActorHandle
    from fray.rpc.resolver import Resolver


class _Pool:
    """The actors that exist at the moment."""

    def __init__(self, actors: Iterable[ActorHandle] | Resolver, name: str = "") -> None:
        """Make a pool of handles, or of all that a resolver finds under a name.

        Raises:
            ValueError: there are no handles, or a resolver without a name.
        """
        self._lock = threading.Lock()
        self._known: Sequence[Endpoint] = ()
        self._name, self._handles = name, []
        self._resolver: Resolver | None = None
        if isinstance(actors, Iterable):
            self._handles = list(actors)
            if not self._handles:
                raise ValueError("there are no actors to make a pool of")
        elif name:
            self._resolver = actors
        else:
            raise ValueError("give the name of the actors, too")

    @property
    def handles(self) -> list[ActorHandle]:
        """The actors that exist, the oldest first.

        Raises:
            ActorNotFoundError: the name has no actor now.
        """
        with self._lock:
            return list(self._refreshed())

    def _refreshed(self) -> list[ActorHandle]:
        if self._resolver is None:
            return self._handles
        endpoints = self._resolver.directory.endpoints(self._name)
        if not endpoints:
            raise ActorNotFoundError(self._resolver.directory.missing(self._name))
        if endpoints != self._known:
            # One that is gone before its turn is replaced by another; so these are not bound to theirs.
            self._known = endpoints
            self._handles = [self._resolver.preferring(endpoint) for endpoint in endpoints]
        return self._handles

    def pick(self) -> ActorHandle:
        """Return the actor whose turn it is.

        Raises:
            ActorNotFoundError: there is none at the moment.
        """
        with self._lock:
            return self._next(self._refreshed())

    def _next(self, handles: Sequence[ActorHandle]) -> ActorHandle:
        raise NotImplementedError

    def start(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ActorFuture[Any]:
        """Call a method of the actor whose turn it is."""
        future: ActorFuture[Any] = self.pick()[method].remote(*args, **kwargs)
        return future

    def __getattr__(self, name: str) -> PoolMethod:
        """Return a method, which one of the actors runs."""
        if name.startswith("_"):
            raise AttributeError(f"underscore names such as {name!r} are not callable")
        return PoolMethod(self, name)


class PoolMethod:
    """A method of one of several actors."""

    def __init__(self, pool: _Pool, name: str) -> None:
        self._pool, self._name = pool, name

    def remote(self, *args: Any, **kwargs: Any) -> ActorFuture[Any]:
        """Call the method of the actor whose turn it is, and return at once."""
        return self._pool.start(self._name, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method of the actor whose turn it is, and return what it returned."""
        return self.remote(*args, **kwargs).result()


class RoundRobin(_Pool):
    """Calls go to one actor after the other."""

    def __init__(self, actors: Iterable[ActorHandle] | Resolver, name: str = "") -> None:
        """Make a pool of handles, or of all that a resolver finds under a name.

        Raises:
            ValueError: there are no handles, or a resolver without a name.
        """
        super().__init__(actors, name)
        self._turns = itertools.count()

    def _next(self, handles: Sequence[ActorHandle]) -> ActorHandle:
        return handles[next(self._turns) % len(handles)]


class LeastLoaded(_Pool):
    """Calls go to the actor that has the fewest of this pool's calls. What others call is not known."""

    def __init__(self, actors: Iterable[ActorHandle] | Resolver, name: str = "") -> None:
        """Make a pool of handles, or of all that a resolver finds under a name.

        Raises:
            ValueError: there are no handles, or a resolver without a name.
        """
        super().__init__(actors, name)
        self._turns = itertools.count()
        self._counting = threading.Lock()  # held for moments only, as calls end on threads that must not wait
        self._loads: Counter[Route] = Counter()

    def _next(self, handles: Sequence[ActorHandle]) -> ActorHandle:
        start = next(self._turns) % len(handles)  # so that equals take turns
        with self._counting:
            return min([*handles[start:], *handles[:start]], key=lambda each: self._loads[each._route])

    def start(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ActorFuture[Any]:
        """Call a method of the actor whose turn it is, and count that until it has ended."""
        with self._lock:
            handle = self._next(self._refreshed())
            self._count(handle, 1)
        try:
            future: ActorFuture[Any] = handle[method].remote(*args, **kwargs)
        except BaseException:
            self._count(handle, -1)
            raise
        future.on_done(lambda: self._count(handle, -1))
        return future

    def _count(self, handle: ActorHandle, more: int) -> None:
        with self._counting:
            self._loads[handle._route] += more
            if not self._loads[handle._route]:
                del self._loads[handle._route]


def broadcast(
    actors: Iterable[ActorHandle] | tuple[Resolver, str], method: str, *args: Any, **kwargs: Any
) -> list[ActorFuture[Any]]:
    """Call a method of all actors at once, and return their futures in the order of the actors.

    Args:
        actors: Handles, or a resolver and a name: all that it finds now.
        method: The method's name.
        *args: Its arguments.
        **kwargs: Its named arguments.
    """
    if isinstance(actors, tuple) and len(actors) == 2 and isinstance(actors[1], str):
        handles: Iterable[ActorHandle] = actors[0].lookup_all(actors[1])
    else:
        handles = actors
    return [handle[method].remote(*args, **kwargs) for handle in handles]
