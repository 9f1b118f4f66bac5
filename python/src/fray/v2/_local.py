"""Actors of a LocalCluster whose jobs are threads: objects in this process, called as remote ones are.

They are registered at servers of this process, so that arguments and results travel as they do between
machines, also to jobs that are processes. The constructor gets copies of its arguments: what no other process
could get is rejected here too.
"""

from __future__ import annotations

import contextvars
import functools
import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

from fray import _pickling
from fray._host_run import construct, error_of
from fray._locks import Changes
from fray.cluster import (
    ActorId,
    ActorNotFoundError,
    AlreadyExistsError,
    ClusterError,
    Entrypoint,
    JobContext,
    JobId,
    JobRequest,
    JobStatus,
    LocalCluster,
    Metadata,
    Namespace,
    WaitTimeoutError,
    job_context,
)
from fray.cluster.attached import attached, close_attached
from fray.cluster.check import check_request
from fray.cluster.local.metadata import death_of
from fray.cluster.types import PythonCall
from fray.rpc.handle import ActorHandle
from fray.rpc.server import ActorServer
from fray.v2.actor import ActorCreationError, ActorSpec, ActorStatus, handle_of
from fray.v2.types import JobHandle

_BACKOFF, _LONGEST_BACKOFF = 0.1, 5.0  # seconds between a failure and the next attempt, as of a LocalCluster


def actors_of(cluster: LocalCluster) -> LocalActors:
    """Return the actors of a cluster, always the same ones."""
    return attached(cluster, LocalActors, lambda: LocalActors(cluster))


class LocalActors:
    """Creates actors in this process, and ends an actor when the job that created it ends."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self.lock = threading.RLock()
        """Held while the actors change; taken before that of an actor."""
        self._actors: dict[tuple[Namespace, str], LocalActor] = {}
        self._failed: set[tuple[Namespace, str]] = set()  # that were started again as often as they might be
        self._clusters: dict[Namespace, NamespaceCluster] = {}
        self._servers: dict[Namespace, list[ActorServer]] = {}
        self._numbers = itertools.count(1)

    def create(self, spec: ActorSpec) -> tuple[LocalActor, bool]:
        """Begin to make an actor, and return it and True, or the one that is there and False.

        Raises:
            InvalidRequestError: its name is none, or it asks for resources that there are nowhere.
            AlreadyExistsError: there is one of that name, and not getting that was asked for.
            PickleError: an argument, or what the class needs, could not travel to another process.
        """
        check_request(JobRequest(spec.name, Entrypoint.from_command(["-"]), spec.resources))
        key = (self._cluster.namespace, spec.name)
        pickled = _pickling.dump(PythonCall(spec.actor_class, tuple(spec.args), dict(spec.kwargs)))
        _pickling.load(pickled)  # an error of it is raised before anything is made
        with self.lock:
            self._reap()
            living = self._actors.get(key)
            if living is not None and spec.options.get_if_exists:
                return living, False
            if living is not None:
                raise AlreadyExistsError(
                    f'actor "{spec.name}" lives in namespace {key[0]}; delete it, or set get_if_exists'
                )
            context = job_context()
            owner = None if spec.options.detached else context
            job_id = JobId(f"actor-{spec.name}-{next(self._numbers)}")
            server = self._server(key[0], spec.names)
            self._failed.discard(key)
            self._cluster.note_death(*key, "")
            actor = self._actors[key] = LocalActor(self, spec, job_id, owner, server)
        if owner is not None:
            threading.Thread(target=self._follow, args=[owner.job_id], daemon=True).start()

        def make() -> Any:
            copied = _pickling.load(pickled)
            return construct(spec.actor_class, copied.args, copied.kwargs)

        actor.begin(make)
        return actor, True

    def _server(self, namespace: Namespace, names: Sequence[str]) -> ActorServer:
        """Return a server with room for these names: a server has the one of a group once."""
        servers = self._servers.setdefault(namespace, [])
        for server in servers:
            if not any(a.server is server and set(names) & set(a.names) for a in self._actors.values()):
                return server
        within: Any = self._clusters.setdefault(
            namespace, NamespaceCluster(self._cluster, namespace, self._owner_of)
        )
        server = ActorServer(within, host="127.0.0.1", namespace=namespace, created=True)
        server.serve_background()
        servers.append(server)
        return server

    @property
    def busy(self) -> bool:
        """Whether there are any."""
        return bool(self._actors)

    def close(self) -> None:
        """End all of them, and their servers."""
        with self.lock:
            actors = list(self._actors.values())
        for actor in actors:
            actor.stop("the end of its cluster")
        with self.lock:
            servers = [server for of_namespace in self._servers.values() for server in of_namespace]
            clusters = list(self._clusters.values())
            self._servers, self._clusters = {}, {}
        for server in servers:
            server.shutdown(0)
        for cluster in clusters:
            close_attached(cluster)

    def _owner_of(self, namespace: Namespace, name: str) -> JobId:
        """Return the job whose end is the end of an actor that is being registered."""
        for (within, _), actor in list(self._actors.items()):
            if within == namespace and name in actor.names:
                return actor.owner.job_id if actor.owner else JobId("")
        return JobId("")

    def find(self, name: str) -> LocalActor | None:
        """Return the actor of a name in the caller's namespace, if it was created here and lives."""
        with self.lock:
            self._reap()
            return self._actors.get((self._cluster.namespace, name))

    def status(self, name: str) -> ActorStatus | None:
        """Return where an actor of the caller's namespace is in its life; None: none was created here."""
        actor = self.find(name)
        if actor is not None:
            return actor.actor_status()
        return ActorStatus.FAILED if (self._cluster.namespace, name) in self._failed else None

    def fail(self, name: str) -> None:
        """Have an actor of the caller's namespace fail as if its process had died.

        Raises:
            ActorNotFoundError: there is none that was created here.
        """
        actor = self.find(name)
        if actor is None:
            raise ActorNotFoundError(f'no actor "{name}" was created in this process')
        actor.fail("it was made to fail")

    def handle(self, name: str) -> ActorHandle[Any]:
        """Return what calls an actor of the caller's namespace."""
        return handle_of(self._cluster, name)

    def note_death(self, actor: LocalActor, why: str) -> None:
        """Have calls of an actor end from now on."""
        self._cluster.note_death(actor.server.namespace, actor.name, why)

    def forget(self, actor: LocalActor, failed: bool) -> None:
        """Free an actor's name; `failed`: it ended by itself rather than by a request."""
        with self.lock:
            for key, each in list(self._actors.items()):
                if each is actor:
                    del self._actors[key]
                    if failed:
                        self._failed.add(key)

    def _follow(self, job_id: JobId) -> None:
        """Wait for the end of a job that created an actor."""
        self._cluster.wait(job_id)
        with self.lock:
            self._reap()

    def _reap(self) -> None:
        for actor in list(self._actors.values()):
            if actor.owner is None:
                continue
            info = self._cluster.poll(actor.owner.job_id)
            if info.status.ended or info.attempt != actor.owner.attempt:
                actor.stop(f"the end of job {actor.owner.job_id}, which created it")


class NamespaceCluster:
    """A LocalCluster as a server of one of its namespaces sees it, whose threads belong to no job."""

    def __init__(
        self, cluster: LocalCluster, namespace: Namespace, owner_of: Callable[[Namespace, str], JobId]
    ) -> None:
        self._cluster, self.namespace = cluster, namespace
        self.metadata = NamespaceMetadata(cluster.metadata, functools.partial(owner_of, namespace))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


class NamespaceMetadata:
    """The registry of that namespace, where actors belong to the jobs that created them."""

    def __init__(self, metadata: Metadata, owner_of: Callable[[str], JobId]) -> None:
        self._metadata, self._owner_of = metadata, owner_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def register(self, name: str, address: str, job_id: JobId, *rest: Any, **others: Any) -> ActorId:
        """Make an endpoint known, see Metadata.register, of the job that created the actor."""
        del job_id  # of this process
        return self._metadata.register(name, address, self._owner_of(name), *rest, **others)


class LocalActor:
    """An actor of this process, see PendingActor; it is its own job, see JobHandle."""

    def __init__(
        self,
        actors: LocalActors,
        spec: ActorSpec,
        job_id: JobId,
        owner: JobContext | None,
        server: ActorServer,
    ) -> None:
        self._actors, self._spec, self._job_id = actors, spec, job_id
        self.server = server
        """Where it is, or will be."""
        self.owner = owner
        """The task with which it ends."""
        self.name, self.names = spec.name, spec.names
        self.handle: ActorHandle[Any] = actors.handle(spec.name)
        self._changed = Changes()
        self._registered: list[str] | None = None  # None: not yet
        self._status = JobStatus.RUNNING
        self._error: ActorCreationError | None = None
        self._make: Callable[[], Any] = object
        self._context = contextvars.Context()
        self._attempt = 1

    @property
    def job(self) -> JobHandle:
        """The actor, as the job that it would be elsewhere."""
        return self

    @property
    def job_id(self) -> str:
        """What it is called; no cluster knows it."""
        return self._job_id

    def begin(self, make: Callable[[], Any]) -> None:
        """Make it in a thread that belongs to the job of the caller."""
        self._make, self._context = make, contextvars.copy_context()
        self._start(0.0)

    def _start(self, delay: float) -> None:
        """Begin an attempt after so many seconds."""
        run = self._context.copy().run
        args = [self._begin, self._attempt, delay]
        threading.Thread(target=run, args=args, name=self._job_id, daemon=True).start()

    def _begin(self, attempt: int, delay: float) -> None:
        with self._changed.lock:
            self._changed.wait_for(lambda: self._is_over(attempt), delay)
            if self._is_over(attempt):
                return
        try:
            made = self._make()
            self._register(made, attempt)
        except (Exception, SystemExit) as err:
            kind, message, text = error_of(err)
            if attempt == 1:
                error = ActorCreationError(self.name, message, kind, text)
                self._end(JobStatus.FAILED, f"its constructor raised {kind}: {message}", error)
            else:
                self.fail(f"its constructor raised {kind}: {message}", attempt)

    def _is_over(self, attempt: int) -> bool:
        return self._status.ended or self._attempt != attempt

    def _register(self, made: Any, attempt: int) -> None:
        with self._changed.lock:
            if self._is_over(attempt):
                return
            registered: list[str] = []
            for name in self.names:
                self.server.register(
                    name,
                    made,
                    max_concurrency=self._spec.options.max_concurrency,
                    concurrency_groups=self._spec.options.concurrency_groups,
                )
                registered.append(name)
            self._registered = registered
            self._changed.notify_all()

    def fail(self, why: str, attempt: int = 0) -> None:
        """Have the attempt fail, and begin another if there may be one; 0: the one that is now."""
        with self._changed.lock:
            if self._is_over(attempt or self._attempt):
                return
            failures, limit = self._attempt, self._spec.options.max_restarts
            if not 0 <= limit < failures:
                self._withdraw(lost=True)
                self._registered = None
                self._attempt += 1
                self._changed.notify_all()
                self._start(min(_LONGEST_BACKOFF, _BACKOFF * 2 ** min(failures - 1, 10)))
                return
        message = f"it failed {failures} times, and was to be started again {limit} times: {why}"
        self._end(JobStatus.FAILED, message, ActorCreationError(self.name, message), lost=True)

    def kill(self) -> None:
        """End it for good; callers get no results of calls that run."""
        self._end(JobStatus.STOPPED, "killed", lost=True)

    def _withdraw(self, lost: bool, death: str = "") -> None:
        """Unregister it; `lost`: callers get no results of calls that run. `death`: why it stays so."""
        for name in self._registered or []:
            self.server.unregister(name, lost=lost, death=death)

    def _end(
        self,
        status: JobStatus,
        why: str,
        error: ActorCreationError | None = None,
        *,
        lost: bool = False,
    ) -> None:
        with self._actors.lock, self._changed.lock:
            if self._status.ended:
                return
            # Before the end can be seen: the name is free for callers that have seen it.
            self._actors.forget(self, failed=lost and status is JobStatus.FAILED)
            self._status, self._error = status, error
            # First, so that calls which are rejected from now on end with the reason.
            death = death_of(self.name, self._job_id, status, why)
            self._actors.note_death(self, death)
            self._withdraw(lost, death)
            self._registered = []
            self._changed.notify_all()

    @property
    def notified(self) -> bool:
        """See PendingActor."""
        return False

    def poll(self, seconds: float) -> bool:
        """Report whether it answers, see PendingActor."""
        with self._changed.lock:
            self._changed.wait_for(lambda: self._registered is not None or self._status.ended, seconds)
            if self._error is not None:
                raise self._error
            if self._status.ended:
                raise ActorCreationError(self.name, "it was terminated")
            return self._registered is not None

    def actor_status(self) -> ActorStatus:
        """Return where it is in its life."""
        with self._changed.lock:
            if self._status.ended:
                return ActorStatus.FAILED
            if self._registered is not None:
                return ActorStatus.READY
            return ActorStatus.CREATING if self._attempt == 1 else ActorStatus.RESTARTING

    # As a job

    def status(self) -> JobStatus:
        """Return where it is in its life, see JobHandle."""
        return self._status

    def wait(self, timeout: float = 300.0, *, raise_on_failure: bool = True) -> JobStatus:
        """Block until it has ended, see JobHandle; the error of its failure is ActorCreationError."""
        with self._changed.lock:
            if not self._changed.wait_for(lambda: self._status.ended, timeout):
                raise WaitTimeoutError(f"{self._job_id} had not ended after {timeout} s")
        if raise_on_failure:
            raise self._error or ClusterError(f"{self._job_id} {self._status}: it was terminated")
        return self._status

    def terminate(self) -> None:
        """End it, see JobHandle."""
        context = job_context()
        self.stop(f"job {context.job_id}" if context is not None else "this program")

    def stop(self, who: str) -> None:
        """End it; `who` or what does."""
        self._end(JobStatus.STOPPED, f"stopped by {who}")

    def __repr__(self) -> str:
        """Return the id."""
        return f"<job {self._job_id}>"
