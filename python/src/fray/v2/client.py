"""Clients, and which of them is the current one."""

from __future__ import annotations

import contextlib
import functools
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, overload, runtime_checkable

from fray.cluster import Cluster, JobId, LocalCluster, NotFoundError, ResourceConfig
from fray.cluster.context import scoped_cluster
from fray.cluster.current import cluster_of
from fray.v2.types import ClusterJob, JobHandle, JobRequest

if TYPE_CHECKING:
    from fray.rpc.handle import ActorHandle
    from fray.v2.actor import ActorGroup, ActorSpec, ActorStatus
    from fray.v2.actors import Actors
    from fray.v2.options import ActorOptions

T = TypeVar("T")

_CLOSED = "the client was shut down; make another one"
_DEFAULT = ResourceConfig()


@runtime_checkable
class Client(Protocol):
    """Submits jobs, and creates actors."""

    def submit(self, request: JobRequest) -> JobHandle:
        """Start a job and return at once.

        Raises:
            AlreadyExistsError: a job of the name lives in the namespace.
            InvalidRequestError: the request has invalid fields; the error names them.
            PickleError: the callable or an argument cannot be pickled.
            ClusterError: another error of fray.cluster.Cluster.launch.
            RuntimeError: the client was shut down.
        """
        ...

    def create_actor(
        self,
        actor_class: Callable[..., T],
        /,
        *args: Any,
        name: str | None = None,
        resources: ResourceConfig = ...,
        options: ActorOptions | None = None,
        **kwargs: Any,
    ) -> ActorHandle[T]:
        """Create an actor and return its handle once it answers, however long that takes.

        Arguments of the constructor that are called `name`, `resources` or `options` go by position, or
        through fray.v2.Actor; those of all other names go to the constructor.

        Args:
            actor_class: What makes it. If its first parameter is called `ctx` it gets an ActorContext first.
                It is made anew, without its state, when it is restarted.
            *args: What that is called with.
            **kwargs: The same, by name.
            name: Unique in the namespace; None: one is made up.
            resources: What it needs.
            options: All else that is to be decided.

        Raises:
            ActorCreationError: the constructor raised, or the job that was to host it ended.
            AlreadyExistsError: the name is taken.
            PickleError: the class or an argument cannot be pickled.
            TypeError: `actor_class` is not callable, `name`, `resources` or `options` have other types, or an
                option is given beside `options`.
            ValueError: `get_if_exists` without a name.
            ClusterError: another error of fray.cluster.Cluster.launch.
            RuntimeError: the client was shut down.
        """
        ...

    def create_actor_group(
        self,
        actor_class: Callable[..., T],
        /,
        *args: Any,
        name: str | None = None,
        count: int,
        resources: ResourceConfig = ...,
        options: ActorOptions | None = None,
        **kwargs: Any,
    ) -> ActorGroup[T]:
        """Begin to create `count` actors, and return at once; see ActorGroup.wait_ready.

        They are called NAME_0, NAME_1 and so on, each with a job of its own, and NAME resolves to all of
        them. The rest is as in `create_actor`.

        Raises:
            ValueError: `count` is less than 1, or `get_if_exists`, which groups lack.
            TypeError: as in `create_actor`.
            ClusterError: one of the jobs could not be launched; then the others are terminated.
        """
        ...

    def delete_actor(self, actor: ActorHandle[Any] | str) -> None:
        """End an actor that was created from code, given by its name or a handle, and return then.

        An actor that deletes itself ends afterwards.

        Raises:
            ActorNotFoundError: there is none.
            RefusedError: it is hosted by a job that was not made for it.
            WaitTimeoutError: it is to end, but its job has not for two minutes.
        """
        ...

    def kill(self, actor: ActorHandle[Any] | str, no_restart: bool = True) -> None:
        """End an actor that was created from code at once, without grace, and return once it has ended.

        Calls that run may have run: they end with MaybeExecutedError, unless they may be made again.

        Args:
            actor: A handle of it, or its name.
            no_restart: Whether it ends for good. Otherwise it fails, and is started again as `max_restarts`
                allows.

        Raises:
            ActorNotFoundError: there is none.
            RefusedError: it is hosted by a job that was not made for it.
            WaitTimeoutError: it is to end, but its job has not for two minutes.
        """
        ...

    @overload
    def get_actor(self, name: str) -> ActorHandle: ...
    @overload
    def get_actor(self, name: str, actor_class: Callable[..., T]) -> ActorHandle[T]: ...
    def get_actor(self, name: str, actor_class: Any = None) -> ActorHandle:
        """Return a handle of an actor that there is, or that is being created or restarted.

        Args:
            name: The name that it was created or registered by, in the namespace.
            actor_class: Its class, for type checkers.

        Raises:
            ActorNotFoundError: there is none, or it has failed for good.
        """
        ...

    def actor_status(self, actor: ActorHandle[Any] | str) -> ActorStatus:
        """Return where an actor is in its life.

        Raises:
            ActorNotFoundError: there is none, or it was deleted.
        """
        ...

    def shutdown(self, wait: bool = True) -> None:
        """End the jobs that were submitted, and the actors that are not detached.

        The client cannot be used afterwards.

        Args:
            wait: Return only when jobs and actors have ended, however long their grace is.
        """
        ...


def spec_of(
    actor_class: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    name: str | None,
    resources: ResourceConfig,
    options: ActorOptions | None,
    *,
    as_given: bool = False,
) -> ActorSpec:
    """Return the actor that is to be created with these arguments of create_actor.

    With `as_given` no argument of the constructor is taken for an option that was meant.
    """
    from fray.v2.actor import ActorSpec
    from fray.v2.options import name_of, options_of

    chosen = options_of(actor_class, resources, options, () if as_given else kwargs)
    return ActorSpec(
        name_of(actor_class, name, chosen), actor_class, args, kwargs, resources=resources, options=chosen
    )


def _name_of(actor: ActorHandle[Any] | str) -> str:
    return actor if isinstance(actor, str) else actor.name


class _ClusterClient:
    """Submits jobs to a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._lock = threading.Lock()
        self._jobs: list[JobId] = []
        self._closed = False
        self._creator: Actors | None = None

    def submit(self, request: JobRequest) -> JobHandle:
        """Start a job and return at once, see Client.submit."""
        if self._closed:
            raise RuntimeError(_CLOSED)
        job_id = self.cluster.launch(request.for_cluster())
        with self._lock:
            self._jobs.append(job_id)
        return ClusterJob(self.cluster, job_id)

    def create_actor(
        self,
        actor_class: Callable[..., T],
        /,
        *args: Any,
        name: str | None = None,
        resources: ResourceConfig = _DEFAULT,
        options: ActorOptions | None = None,
        **kwargs: Any,
    ) -> ActorHandle[T]:
        """Create an actor and return its handle once it answers, see Client.create_actor."""
        return self.create(spec_of(actor_class, args, kwargs, name, resources, options))

    def create_actor_group(
        self,
        actor_class: Callable[..., T],
        /,
        *args: Any,
        name: str | None = None,
        count: int,
        resources: ResourceConfig = _DEFAULT,
        options: ActorOptions | None = None,
        **kwargs: Any,
    ) -> ActorGroup[T]:
        """Begin to create actors, see Client.create_actor_group."""
        spec = spec_of(actor_class, args, kwargs, name, resources, options)
        return self._actors().create_group(spec, count)

    def create(self, spec: ActorSpec) -> ActorHandle[Any]:
        """Create what `create_actor` was asked for."""
        return self._actors().create(spec)

    def delete_actor(self, actor: ActorHandle[Any] | str) -> None:
        """End an actor that was created from code, see Client.delete_actor."""
        self._actors().delete(_name_of(actor))

    def kill(self, actor: ActorHandle[Any] | str, no_restart: bool = True) -> None:
        """End an actor at once, without grace, see Client.kill."""
        self._actors().kill(_name_of(actor), no_restart)

    def get_actor(self, name: str, actor_class: Any = None) -> ActorHandle:
        """Return a handle of an actor that there is, see Client.get_actor."""
        del actor_class
        return self._actors().get(name)

    def actor_status(self, actor: ActorHandle[Any] | str) -> ActorStatus:
        """Return where an actor is in its life, see Client.actor_status."""
        return self._actors().status(_name_of(actor))

    def _actors(self) -> Actors:
        """Return what creates actors, which is imported when it is first used."""
        from fray.v2.actors import Actors

        with self._lock:
            if self._closed:
                raise RuntimeError(_CLOSED)
            if self._creator is None:
                self._creator = Actors(self.cluster)
            return self._creator

    def shutdown(self, wait: bool = True) -> None:
        """End the jobs that were submitted and have not ended, see Client.shutdown."""
        with self._lock:
            self._closed = True
            jobs, self._jobs = self._jobs, []
            creator = self._creator
        actors = creator.terminate() if creator is not None else []
        for job_id in jobs:
            with contextlib.suppress(NotFoundError):  # it ended long ago
                self.cluster.terminate(job_id)
        for job_id in jobs if wait else ():
            with contextlib.suppress(NotFoundError):
                self.cluster.wait(job_id)
        if wait and creator is not None:
            creator.await_end(actors)

    def __enter__(self) -> Self:
        """Make this the current client until the end, which shuts it down."""
        self._current = set_current_client(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Shut the client down."""
        self._current.__exit__(None, None, None)
        self.shutdown()


class LocalClient(_ClusterClient):
    """Runs jobs on this machine, see fray.cluster.LocalCluster. Actors are objects of this process."""

    def __init__(self, max_workers: int = 4, use_processes: bool = False) -> None:
        """Make a client of a new LocalCluster, see there for the arguments.

        Raises:
            ValueError: `max_workers` is less than 1.
        """
        super().__init__(LocalCluster(max_workers, use_processes))

    def shutdown(self, wait: bool = True) -> None:
        """End the jobs that were submitted, and the actors that are not detached, see Client.shutdown."""
        super().shutdown(wait)
        if isinstance(self.cluster, LocalCluster):
            self.cluster.rest()

    def fail_actor(self, actor: ActorHandle[Any] | str) -> None:
        """Have an actor fail as if its process had died, for tests of how that is taken.

        Calls that run may have run: they end with MaybeExecutedError, unless they may be made again. The
        actor is made anew, without its state, until that was done `max_restarts` times; then it is FAILED.

        Raises:
            ActorNotFoundError: there is none that was created in this process.
        """
        self._actors().fail(_name_of(actor))


class FrayClient(_ClusterClient):
    """Submits jobs to a fray cluster."""

    def __init__(self, spec: str) -> None:
        """Connect to fray://HOST:PORT, see fray.cluster.FrayCluster.from_spec.

        Raises:
            ValueError: the spec has another form, or plain text would leave this machine.
        """
        from fray.cluster.remote import FrayCluster  # slow to import, and LocalClient needs none of it

        super().__init__(FrayCluster.from_spec(spec))


_current: ContextVar[Client | None] = ContextVar("fray_client", default=None)


def set_current_client(client: Client) -> AbstractContextManager[Client]:
    """Make a client the current one, for good or, in a `with` statement, until its end."""
    return _Setting(client, _current.set(client))


class _Setting(AbstractContextManager[Client]):
    """A client that is the current one."""

    def __init__(self, client: Client, token: Token[Client | None]) -> None:
        self._client, self._token = client, token

    def __enter__(self) -> Client:
        return self._client

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def current_client() -> Client:
    """Return the client that this code is to use.

    It is the first of these:

    1. the one that `set_current_client` or a `with` statement made the current one;
    2. in a job of a local cluster, a client of that cluster;
    3. what FRAY_CLIENT_SPEC names, or FRAY_CLUSTER_SPEC, which fray sets for its tasks: "local",
       "fray://host:port", "ray:auto", "ray:host:port" or "ray://host:port";
    4. a LocalClient.

    Raises:
        ValueError: the variable has another value.
    """
    client = _current.get()
    if client is not None:
        return client
    cluster = scoped_cluster()
    if cluster is not None:
        return _ClusterClient(cluster)
    return _client_of(os.environ.get("FRAY_CLIENT_SPEC") or os.environ.get("FRAY_CLUSTER_SPEC", ""))


def kill(actor: ActorHandle | str, no_restart: bool = True) -> None:
    """End an actor of the current client at once, without grace, see Client.kill."""
    current_client().kill(actor, no_restart)


@overload
def get_actor(name: str) -> ActorHandle: ...
@overload
def get_actor(name: str, actor_class: Callable[..., T]) -> ActorHandle[T]: ...
def get_actor(name: str, actor_class: Any = None) -> ActorHandle:
    """Return a handle of an actor that there is, by the current client, see Client.get_actor."""
    return current_client().get_actor(name, actor_class)


@functools.cache
def _client_of(spec: str) -> Client:
    if spec in ("", "local"):
        client = LocalClient()
        client.cluster = cluster_of(spec)  # the current cluster, which knows its actors and jobs
        return client
    if spec.startswith("fray:"):
        return FrayClient(spec)
    if spec.startswith("iris:"):
        from fray.v2.iris_backend import FrayIrisClient

        return FrayIrisClient(spec)
    if spec.startswith("ray:"):
        from fray.v2.ray_backend import RayClient

        return RayClient(spec)
    return _ClusterClient(cluster_of(spec))
