"""Hosting actors: any Python object, under a name, for callers in other processes.

Serving connections is left to `_serving.listener`, and running calls to `_serving.core`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from fray._latch import Latch
from fray.cluster.context import job_context
from fray.cluster.current import current_cluster
from fray.cluster.errors import AccessDeniedError, AlreadyExistsError, ClusterUnavailableError, RefusedError
from fray.cluster.protocols import Cluster, Metadata
from fray.cluster.types import ActorId, JobId, Namespace
from fray.rpc._serving.actor import Actor, Named
from fray.rpc._serving.core import Core, Limits
from fray.rpc._serving.listener import Listener
from fray.rpc._serving.mailbox import Mailbox
from fray.rpc._serving.methods import method, methods_of, misfit
from fray.rpc._serving.output import OUTPUT, in_task, tag_lines
from fray.rpc._transport.memory import DEFAULT_MEMORY
from fray.rpc._transport.names import random_name
from fray.rpc._transport.tls import identity_of
from fray.rpc._transport.wire import DEFAULT_MAX_MESSAGE
from fray.rpc.context import Surroundings

__all__ = ["ActorServer", "method"]

_LOOPBACK = "127.0.0.1"
_WAKE = 0.5  # seconds
_GRACE = 5.0  # seconds
_UNTIL_KILLED = 1e6  # seconds
_UNREGISTER = 2.0  # seconds that draining waits for a cluster which does not answer
_WILDCARDS = ("0.0.0.0", "::", "")
_log = logging.getLogger("fray.rpc")


class ActorServer:
    """Serves actors on one port, and makes their names known in the cluster.

        server = ActorServer(current_cluster())
        server.register("counter", Counter())
        server.serve()

    With the identity of the namespace in FRAY_ACTOR_IDENTITY, as in the jobs of a fray cluster, it takes only
    peers that have it too. Without, it is reachable from this machine only, unless `insecure` is set.
    """

    def __init__(
        self,
        cluster: Cluster | Metadata,
        host: str = "0.0.0.0",
        port: int = 0,
        *,
        namespace: str | None = None,
        max_message_bytes: int = DEFAULT_MAX_MESSAGE,
        transfer_memory: int = DEFAULT_MEMORY,
        allow_pickle: bool = False,
        created: bool = False,
        insecure: bool = False,
        keepalive: float = 10.0,
        patience: float = 20.0,
    ) -> None:
        """Bind to a port; connections are served after `serve` or `serve_background`.

        Args:
            cluster: Where the names are registered. With the registry alone, `cluster.metadata`, contexts of
                calls have the current cluster.
            host: The address to bind to.
            port: The port, 0 for FRAY_PORT_ACTOR where that is set, else for any.
            namespace: Of the actors; None: that of the cluster. Jobs may give their own only.
            max_message_bytes: The largest arguments of a call and the largest result, in bytes; decoding one
                takes at most as much memory again.
            transfer_memory: Bytes of large arguments that are received at once, and of large results that are
                sent at once, each; others wait.
            allow_pickle: Take pickled arguments, which run whatever code the sender names, from peers that
                have shown the namespace's identity.
            created: Its actors are such as create_actor makes: they run the code of their callers. Pickle is
                the fallback between them and callers that have shown the namespace's identity.
            insecure: Without an identity, bind to `host` all the same. Any process that reaches it can call.
            keepalive: How long a client may be silent before it is pinged, in seconds.
            patience: How long it may be silent after a ping before its connection is closed, in seconds.

        Raises:
            AccessDeniedError: this is a job of another namespace than that.
            ValueError: `host` is not of this machine, there is no identity and `insecure` is not set.
            OSError: the address cannot be bound to, or the identity not read.
            TypeError: `cluster` is neither a cluster nor the registry of one.
        """
        context = job_context()
        environ = context.environ if context else os.environ
        path = environ.get("FRAY_ACTOR_IDENTITY", "")
        if context is not None and namespace not in (None, context.namespace):
            raise AccessDeniedError(
                f'a job of namespace "{context.namespace}" may not host actors of namespace "{namespace}"; '
                "leave namespace out, or host them by a job of that namespace"
            )
        identity = identity_of(path) if path else None
        self._registry = _registry_of(cluster, namespace)
        self._job_id = context.job_id if context else JobId("")
        self.namespace = Namespace(cluster.namespace if namespace is None else namespace)
        """The scope of the actors' names."""
        surrounding = current_cluster() if isinstance(cluster, Metadata) else cluster
        secret_of = getattr(surrounding, "actor_secret", None) if identity is None else None
        limits = Limits(
            namespace=self.namespace,
            max_message_bytes=max_message_bytes,
            transfer_memory=transfer_memory,
            allow_pickle=allow_pickle,
            created=created,
            secure=identity is not None,
            secret=secret_of(self.namespace) if secret_of is not None else b"",
            keepalive=keepalive,
            patience=patience,
        )
        self._core = Core(limits, Surroundings(surrounding, self._job_id, self.namespace))
        if identity is None and not insecure:
            host = _narrowed(host)
        port = port or int(environ.get("FRAY_PORT_ACTOR", "0"))
        self._listener = Listener(self._core, identity, (host, port), self._page)
        self._reachable = (environ.get("FRAY_HOST_ADDRESS") or _LOOPBACK) if host in _WILDCARDS else host
        self._lock = threading.Lock()  # of what follows
        self._registered: dict[str, ActorId] = {}
        self._stopping = False
        self._asked, self._done = Latch(), Latch()  # to shut down, and that it has

    @property
    def address(self) -> str:
        """Where it can be reached, host:port."""
        host = f"[{self._reachable}]" if ":" in self._reachable else self._reachable
        return f"{host}:{self._listener.port}"

    @property
    def ready(self) -> bool:
        """Whether it has actors, all of them are registered, and it does not drain."""
        actors = self._core.actors
        return bool(actors) and not self._core.draining and actors.keys() <= self._registered.keys()

    def register(
        self,
        name: str,
        actor: Any,
        metadata: Mapping[str, str] | None = None,
        *,
        max_concurrency: int | None = None,
        concurrency_groups: Mapping[str, int] | None = None,
    ) -> ActorId:
        """Let an object be called by a name. Returns the id of this incarnation.

        An object that has a name already may get another one: its calls wait in the same mailbox, with the
        options of the first registration.

        Args:
            name: In the namespace. Servers may share one, each with an object of its own.
            actor: The object. Its methods can be called, except ones with a leading underscore.
            metadata: For clients that look up the name.
            max_concurrency: Calls at once; None: one, so that nothing in the object needs a lock, or 1000 if
                the class has asynchronous methods (others of it still run one at a time).
            concurrency_groups: How many calls at once of the methods which `method` puts into each group.

        Raises:
            AlreadyExistsError: this server has an actor of that name.
            RefusedError: it is shutting down.
            ValueError: the object has no method that can be called, or a group of one of them is not given.
            ClusterError: it could not be registered with the cluster; then it is not served.
        """
        if self._stopping:
            raise RefusedError("the server is shutting down; it takes no more actors")
        named = self._named(name, actor, max_concurrency, concurrency_groups or {})
        if not self._core.add(Actor(named, self._core)):
            raise AlreadyExistsError(f'an actor "{name}" is in this server already; unregister it first')
        try:
            known = self._announce(named, metadata or {})
        except BaseException:
            self._core.remove(name)
            raise
        with self._lock:
            self._registered[name] = known
        if in_task() and self._core.objects > 1:
            tag_lines()
        return ActorId(named.incarnation)

    def unregister(self, name: str, *, lost: bool = False, death: str = "") -> None:
        """Let it not be called any more. Calls that wait are rejected, one that runs is answered.

        A name that is not registered changes nothing. With `lost` calls that run end with MaybeExecutedError,
        as if the process had died; with `death`, why it does not come back, with ActorDiedError.

        Raises:
            ClusterError: the cluster could not remove the name. Calls by it go on.
        """
        with self._lock:
            known = self._registered.pop(name, None)
        if known is not None:
            self._registry().unregister(known)
        actor = self._core.remove(name, lost, death)
        if actor is not None and self._core.mailbox_of(actor.value) is None:
            actor.mailbox.stop()

    def allow_kill(self) -> None:
        """Let clients of the namespace end this process at once, as fray.v2.kill does."""
        self._core.killable = True

    def serve(self) -> None:
        """Serve until `shutdown`. In the main thread SIGTERM does that, and so does Ctrl-C.

        After SIGTERM in a job it ends once all calls are answered: the cluster kills it when grace is over.
        """
        with self._on_sigterm() as grace:
            try:
                self._listener.start()
                while not self._asked.wait(_WAKE):
                    pass  # a thread of a LocalCluster that is stopped notices here
            finally:
                # Elsewhere: a thread of a LocalCluster that is stopped ends at its next lock of the cluster.
                self._shut_down_soon(grace[-1])
                self._done.wait()

    def serve_background(self) -> None:
        """Serve in the background, until `shutdown`."""
        self._listener.start()

    def start(self) -> None:
        """Serve in the background, as serve_background does."""
        self.serve_background()

    def shutdown(self, grace_period: float = _GRACE) -> None:
        """Unregister all names, reject new calls, answer the pending ones, and close.

        Args:
            grace_period: How long pending calls may take, in seconds. Those that have not ended then are
                lost for their callers, as if the process had died. Errors of the cluster are logged.
        """
        with self._lock:
            first, self._stopping = not self._stopping, True
            known, self._registered = list(self._registered.values()), {}
        if not first:
            self._done.wait()
            return
        try:
            self._end(known, grace_period)
        finally:
            self._done.set()
            self._asked.set()

    def _end(self, known: Sequence[ActorId], seconds: float) -> None:
        until = time.monotonic() + seconds
        gone = min(until, time.monotonic() + _UNREGISTER)
        leaving = threading.Thread(
            target=self._unregister_all, args=(known,), name="fray-actor-unregister", daemon=True
        )
        leaving.start()
        leaving.join(min(seconds, _UNREGISTER))
        self._core.draining = True
        self._listener.stop_accepting()
        self._core.drain(max(0.0, until - time.monotonic()))
        self._listener.close(1)
        self._core.stop(1)
        leaving.join(max(0.0, gone - time.monotonic()))

    def _unregister_all(self, known: Sequence[ActorId]) -> None:
        for actor_id in known:
            try:
                self._registry().unregister(actor_id)
            except ClusterUnavailableError as err:
                _log.warning("actors stay registered until their task has ended: %s", err)
                return
            except Exception as err:
                _log.warning("%s could not be unregistered: %s", actor_id, err)

    def __enter__(self) -> ActorServer:
        self.serve_background()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _named(self, name: str, actor: Any, limit: int | None, groups: Mapping[str, int]) -> Named:
        table = methods_of(type(actor))
        if not name:
            raise ValueError("an actor needs a name")
        if problem := misfit(table, groups):
            raise ValueError(problem)
        if any(n < 1 for n in (limit or 1, *groups.values())) or limit == 0:
            raise ValueError("max_concurrency and concurrency_groups are 1 at least")
        mailbox = self._core.mailbox_of(actor) or Mailbox(
            name, table.asynchronous, limit, groups, self._core.loop
        )
        return Named(name, f"actor-{random_name()}", actor, table, mailbox)

    def _announce(self, named: Named, metadata: Mapping[str, str]) -> ActorId:
        about = {"protocol": "fray-actor/1", "language": "python", "class": named.table.class_name}
        if in_task():
            about[OUTPUT] = named.mailbox.name
        return self._registry().register(
            named.name, self.address, self._job_id, {**about, **metadata}, actor_id=ActorId(named.incarnation)
        )

    def _page(self, path: str) -> tuple[int, str, str]:
        if path == "/readyz":
            return (200, "text/plain", "ready\n") if self.ready else (503, "text/plain", "not ready\n")
        if path == "/metrics":
            return 200, "text/plain; version=0.0.4", self._core.metrics(len(self._listener.sessions))
        return 404, "text/plain", "there are /readyz and /metrics\n"

    @contextlib.contextmanager
    def _on_sigterm(self) -> Iterator[list[float]]:
        """Ask for the end at SIGTERM. Yields a list whose last is the seconds of grace then."""
        grace = [_GRACE]
        if threading.current_thread() is not threading.main_thread():
            yield grace
            return

        def ask(*_: object) -> None:  # and no more: a handler must not wait for any lock
            grace.append(_UNTIL_KILLED if self._job_id else _GRACE)
            self._asked.set()

        before = signal.signal(signal.SIGTERM, ask)
        try:
            yield grace
        finally:
            signal.signal(signal.SIGTERM, before)

    def _shut_down_soon(self, grace: float) -> None:
        threading.Thread(target=self.shutdown, args=(grace,), name="fray-actor-shutdown").start()


def _registry_of(cluster: Cluster | Metadata, namespace: str | None) -> Callable[[], Metadata]:
    """Return what gives the registry; a cluster's may be of another namespace later."""
    if isinstance(cluster, Metadata):
        if namespace not in (None, cluster.namespace):
            raise AccessDeniedError(
                f'the registry is of namespace "{cluster.namespace}", not "{namespace}"; give the cluster'
            )
        return lambda: cluster
    if not hasattr(cluster, "metadata"):
        raise TypeError(
            f"an ActorServer registers its actors in a cluster, got {cluster!r}; "
            "write ActorServer(current_cluster(), host=..., port=...)"
        )
    of_namespace: Callable[[str], Metadata] | None = getattr(cluster, "metadata_of", None)
    if namespace is None or of_namespace is None:
        return lambda: cluster.metadata
    return lambda: cluster.metadata if cluster.namespace == namespace else of_namespace(namespace)


def _narrowed(host: str) -> str:
    """Return the host to bind to without an identity."""
    if host in _WILDCARDS:
        return _LOOPBACK
    if host in (_LOOPBACK, "::1", "localhost") or host.startswith("127."):
        return host
    raise ValueError(
        "without the namespace's identity (FRAY_ACTOR_IDENTITY) actors are served on this machine only; "
        f"bind {host} with insecure=True if every client that reaches it may call"
    )
