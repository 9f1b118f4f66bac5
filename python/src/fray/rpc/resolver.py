"""Resolvers find actors by their names, and make handles of them.

Where names are kept is left to directories, and calls to routes.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from fray.cluster.context import scoped_cluster
from fray.cluster.current import current_cluster
from fray.cluster.errors import ActorNotFoundError, RefusedError, WaitTimeoutError
from fray.rpc._calling.channel import channels
from fray.rpc._calling.resolve import Directory, Endpoint, FixedDirectory, address_of
from fray.rpc._calling.resolve_cluster import directory_of, directory_that_knows
from fray.rpc._calling.route import Route
from fray.rpc.errors import UnavailableError
from fray.rpc.handle import ActorHandle
from fray.rpc.options import ConnectionSettings, RpcOptions

if TYPE_CHECKING:
    from fray.cluster.protocols import Cluster
    from fray.cluster.types import JobId
    from fray.rpc.codec import ActorRef

_POLL = 0.25  # seconds between two checks of a job


@runtime_checkable
class Resolver(Protocol):
    """Finds actors. Handles that it made find theirs again when it has moved."""

    directory: Directory
    """Where names are looked up."""

    def lookup(self, name: str) -> ActorHandle:
        """Return a handle of the actor of a name, the newest if there are several.

        Raises:
            ActorNotFoundError: there is none. The message has names that are near.
        """
        ...

    def lookup_all(self, name: str) -> list[ActorHandle]:
        """Return a handle of each actor of a name, the oldest first. Each stays with its actor's task."""
        ...

    def wait_for_actor(self, name: str, timeout: float = 60.0, job_id: JobId | None = None) -> ActorHandle:
        """Wait until there is an actor of a name, and return a handle of it.

        Args:
            name: The actor's.
            timeout: The longest wait in seconds.
            job_id: The job that is to host it: when that ends there is nothing to wait for.

        Raises:
            WaitTimeoutError: the time was over.
            RefusedError: the job has ended. The message has its reason.
        """
        ...

    def handle(self, name: str, url: str = "") -> ActorHandle:
        """Return a handle without checking whether there is such an actor: calls wait for it.

        `url` is which of several of that name is meant, as long as it is there.
        """
        ...

    def preferring(self, endpoint: Endpoint) -> ActorHandle:
        """Return a handle of one of several actors of a name, or of another once that is gone."""
        ...

    def resolve(self, name: str) -> list[str]:
        """Return where the actors of a name are, as actor://host:port/name, the oldest first."""
        ...


class BaseResolver:
    """What all resolvers have in common."""

    def __init__(
        self, directory: Directory, options: RpcOptions | None, settings: ConnectionSettings | None
    ) -> None:
        self.directory = directory
        """Where names are looked up."""
        self.options = options or RpcOptions()
        """Of the handles that are made."""
        # Each channel has a peer of its own. The rest is completed by the directory when it is used.
        self._settings = replace(settings or ConnectionSettings(), peer="")
        self._lock = threading.Lock()

    def lookup(self, name: str) -> ActorHandle:
        """Return a handle of the actor of a name, see Resolver.lookup."""
        if not self.directory.endpoints(name):
            raise ActorNotFoundError(self.directory.missing(name), self.directory.fate(name).death)
        return self.existing(name)

    def handle(self, name: str, url: str = "") -> ActorHandle:
        """Return a handle without checking whether there is such an actor, see Resolver.handle."""
        prefer = Endpoint(name, address_of(url)[0]) if url else None
        known = self.directory.known(name) if prefer is not None else []
        if prefer is not None and known and known[-1].address == prefer.address:
            prefer = None  # that is the one which the name stands for
        route = self._route(name, prefer, False)
        if url:
            route.expect()
        return ActorHandle(route, self.options)

    def existing(self, name: str) -> ActorHandle:
        """Return a handle of an actor that was there: calls of it end when it is gone for good."""
        route = self._route(name, None, False)
        route.expect()
        return ActorHandle(route, self.options)

    def lookup_all(self, name: str) -> list[ActorHandle]:
        """Return a handle of each actor of a name, see Resolver.lookup_all."""
        found = self.directory.endpoints(name)
        counts = Counter(endpoint.member for endpoint in found)
        return [self.pinned(e) if counts[e.member] == 1 else self._at(e) for e in found]

    def pinned(self, endpoint: Endpoint) -> ActorHandle:
        """Return a handle of one of several actors of a name, wherever that member of it is then."""
        return self.member(endpoint.name, endpoint.member)

    def member(self, name: str, member: str) -> ActorHandle:
        """Return a handle of one of several of a name: that of a task, written job/index, or of a machine."""
        route = self._route(name, Endpoint(name, "", place=member), True)
        route.expect()
        return ActorHandle(route, self.options)

    def _at(self, endpoint: Endpoint) -> ActorHandle:
        """Return a handle of one of several that a task has under one name, or of another there later."""
        return ActorHandle(self._route(endpoint.name, endpoint, True), self.options)

    def preferring(self, endpoint: Endpoint) -> ActorHandle:
        """Return a handle of one of several actors of a name, or of another once that is gone."""
        return ActorHandle(self._route(endpoint.name, endpoint, False), self.options)

    def resolve(self, name: str) -> list[str]:
        """Return where the actors of a name are, see Resolver.resolve."""
        return [endpoint.url for endpoint in self.directory.endpoints(name)]

    def wait_for_actor(self, name: str, timeout: float = 60.0, job_id: JobId | None = None) -> ActorHandle:
        """Wait until there is an actor of a name, see Resolver.wait_for_actor."""
        until = monotonic() + timeout
        while not self._is_there(name):
            left = until - monotonic()
            if job_id is not None:
                self._check_runs(job_id)
            if left <= 0:
                raise WaitTimeoutError(f"{self.directory.missing(name)}: waited {timeout:g} s")
            self._wait(name, min(left, 1.0 if job_id is None else _POLL))
        return self.existing(name)

    def _wait(self, name: str, seconds: float) -> None:
        """Return when there may be an actor of a name."""
        self.directory.wait(name, seconds)

    def _is_there(self, name: str) -> bool:
        return bool(self.directory.fresh(name))

    def _check_runs(self, job_id: JobId) -> None:
        raise ValueError(f"job {job_id} is of a cluster, and this resolver knows none")

    def _route(self, name: str, prefer: Endpoint | None, pinned: bool) -> Route:
        def make() -> Route:
            return Route(self.directory, name, self._settings, _Restorer(self), prefer, pinned)

        return self.directory.routes.get((name, prefer, pinned, self._settings), prefer is None, make)


class _Restorer:
    """Makes handles of the references in results."""

    def __init__(self, resolver: BaseResolver) -> None:
        self._resolver = resolver

    def __call__(self, reference: ActorRef) -> ActorHandle:
        return handle_of(*reference, near=self._resolver)

    @property
    def anywhere(self) -> Callable[..., ActorHandle]:
        """The function that pickled handles name."""
        return handle_of


class ClusterResolver(BaseResolver):
    """Finds the actors that are registered in a cluster's namespace.

    It asks the cluster once and watches what changes then. So a lookup takes no time, and a handle knows of a
    move as soon as the cluster does.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str | None = None,
        options: RpcOptions | None = None,
        settings: ConnectionSettings | None = None,
    ) -> None:
        """Make a resolver.

        Args:
            cluster: Whose actors are found.
            namespace: Where names are looked up; None: that of the cluster's connection.
            options: Of the handles that are made.
            settings: Of connections to actors; None: those of this process.
        """
        super().__init__(directory_of(cluster, namespace), options, settings)
        self._cluster = cluster

    def _check_runs(self, job_id: JobId) -> None:
        info = self._cluster.poll(job_id)
        if info.status.ended:
            reason = f": {info.reason}" if info.reason else ""
            raise RefusedError(f"job {job_id} has ended, it is {info.status}{reason}")

    def _wait(self, name: str, seconds: float) -> None:
        lent = getattr(self._cluster, "await_actor", None)
        if lent is None:
            super()._wait(name, seconds)
        else:  # a LocalCluster, which has the worker of a job that waits for something to do
            lent(name, self.directory.namespace, seconds)


class FixedResolver(BaseResolver):
    """Finds all actors at one address, without a lookup."""

    def __init__(
        self,
        address: str,
        *,
        options: RpcOptions | None = None,
        settings: ConnectionSettings | None = None,
    ) -> None:
        """Make a resolver.

        Args:
            address: host:port, or actor://host:port or grpc://host:port, with a name or without.
            options: Of the handles that are made.
            settings: Of connections to actors; None: those of this process.
        """
        self.address, _ = address_of(address)
        self._fixed = _fixed(self.address)
        super().__init__(self._fixed, options, settings)

    def _is_there(self, name: str) -> bool:
        try:
            settings = self._fixed.settings(self._settings)
            connection = channels().at(self.address, settings).connect(settings.connect_timeout)
            return any(actor.name == name for actor in connection.list_actors(name, 10).actors)
        except UnavailableError:
            return False


@cache
def _fixed(address: str) -> FixedDirectory:
    return FixedDirectory(address)


def handle_of(
    name: str,
    namespace: str,
    url: str,
    member: str = "",
    options: RpcOptions | None = None,
    *,
    near: BaseResolver | None = None,
) -> ActorHandle:
    """Return the handle that another process sent as a name, its namespace and where the actor was.

    In a cluster's jobs the name is looked up, and elsewhere the actor is taken to be where it was. A `member`
    is which of several actors of the name it is and stays. `near` is the resolver by which the message came:
    names of its namespace are looked up there.
    """
    resolver = _resolver_for(name, namespace, url, near)
    of_member = member and resolver.directory.namespace
    handle: ActorHandle = resolver.member(name, member) if of_member else resolver.handle(name, url)
    return handle if options is None else handle.with_options(options)


def _resolver_for(name: str, namespace: str, url: str, near: BaseResolver | None) -> BaseResolver:
    if not namespace:
        return FixedResolver(url)
    if near is not None and near.directory.namespace == namespace:
        return near
    in_cluster = scoped_cluster() is not None or bool(os.environ.get("FRAY_CLUSTER_SPEC"))
    if not url or (in_cluster and current_cluster().namespace == namespace):
        return ClusterResolver(current_cluster(), namespace=namespace)
    used = directory_that_knows(name, namespace, address_of(url)[0])
    return FixedResolver(url) if used is None else BaseResolver(used, None, None)
