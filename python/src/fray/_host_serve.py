"""Serves an actor that was made, and registers it at the cluster as soon as that is possible."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fray import _termination, profiles
from fray._host_run import CONSTRUCTION_FAILED, Hosting
from fray._latch import Latch
from fray.cluster.context import job_context
from fray.cluster.current import current_cluster, import_backend, spec_of_environment
from fray.cluster.errors import ClusterError, ClusterUnavailableError, NoControllerError
from fray.cluster.protocols import Cluster, Metadata
from fray.cluster.types import ActorId, JobId, TerminationCause
from fray.rpc.server import ActorServer

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds between two tries to register
_TICK = 0.5  # seconds
_NO_LIMIT = 1e6  # seconds; the agent kills the task when its stop grace is over
_FIRST_HOPE, _LONGEST_HOPE = 1.0, 10.0  # the same, while no controller leads
_left = threading.Event()


def begin_connecting() -> threading.Thread:
    """Make the current cluster in a thread, all of whose imports are done when this returns.

    Two threads that first import a package and one of its modules at the same time wait for each other, and
    Python fails the import of one of them: none may import while the actor's own module is being imported. An
    error is not reported here; it occurs again in serve.
    """
    with contextlib.suppress(ValueError):
        import_backend(spec_of_environment())
    thread = threading.Thread(target=_connect, name="fray-connect", daemon=True)
    thread.start()
    return thread


def _connect() -> None:
    with contextlib.suppress(Exception):
        current_cluster()


def serve(actor: Any, hosting: Hosting) -> int:
    """Serve an actor until SIGTERM, drain, and return the exit status."""
    cluster = current_cluster()
    _lend_worker(cluster)
    return Serving(cluster, actor, hosting).wait()


class Serving:
    """An actor that is served, and registered as soon as that is possible."""

    def __init__(self, cluster: Cluster, actor: Any, hosting: Hosting) -> None:
        """Begin to serve.

        Raises:
            OSError, ValueError: the address cannot be bound to.
        """
        self._registration = _Registration(actor, hosting)
        self._hosted = HostCluster(cluster, self._registration.rejected)
        self._server = ActorServer(
            self._hosted, host=_own_address(), allow_pickle=hosting.allow_pickle, created=hosting.created
        )
        if hosting.created:
            self._server.allow_kill()
        self._server.serve_background()
        profiles.serve()
        sys.stderr.write(f"fray: {', '.join(hosting.names)} at {self._server.address}\n")
        self._registration.begin(self._server)

    def end(self) -> None:
        """Have it drain and end; from any thread."""
        self._registration.over.set()

    def wait(self) -> int:
        """Wait for SIGTERM or `end`, drain, and return the exit status."""
        over = self._registration.over
        with _stopped_by_sigterm(over):
            while not over.wait(_TICK) and not _left.is_set():  # so that a thread can be stopped, too
                continue
            self._hosted.stop()
            self._server.shutdown(_NO_LIMIT)
        return self._registration.status


def leave() -> None:
    """End this process, which hosts an actor, as SIGTERM does: for an actor that has done its work."""
    _left.set()


def _own_address() -> str:
    """Return where to listen: on this machine's slices, which share it, at the address of their own."""
    address = os.environ.get("FRAY_HOST_ADDRESS", "")
    return address if address.startswith("127.") else "0.0.0.0"


@contextlib.contextmanager
def _stopped_by_sigterm(over: Latch) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda *_: over.set())
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _lend_worker(cluster: Cluster) -> None:
    """Let other tasks run while this one answers: a LocalCluster's job that waits takes no worker."""
    context = job_context()
    if context is None or not os.environ.get("FRAY_CLUSTER_SPEC", "").startswith("local:"):
        return
    job_id = context.job_id

    def wait() -> None:
        with contextlib.suppress(ClusterError):
            cluster.wait(job_id)

    threading.Thread(target=wait, name="fray worker", daemon=True).start()


class _Registration:
    """Registers an actor by all its names; a permanent rejection ends the host."""

    def __init__(self, actor: Any, hosting: Hosting) -> None:
        self._actor, self._hosting = actor, hosting
        self.status = 0
        self.over = Latch()
        """Set when the server is to end."""

    def begin(self, server: ActorServer) -> None:
        """Register in the background, as that may take long."""
        threading.Thread(target=self._run, args=[server], name="fray registration", daemon=True).start()

    def _run(self, server: ActorServer) -> None:
        try:
            for name in self._hosting.names:
                server.register(
                    name,
                    self._actor,
                    max_concurrency=self._hosting.max_concurrency,
                    concurrency_groups=self._hosting.concurrency_groups,
                )
        except (ClusterError, TypeError, ValueError) as err:
            self.rejected(err)

    def rejected(self, err: Exception) -> None:
        """Give up, for good if another attempt would be rejected too."""
        invalid = isinstance(err, (TypeError, ValueError))  # an InvalidRequestError is one
        if invalid:
            _termination.record(TerminationCause.ACTOR_INVALID, f"the actor cannot be registered: {err}")
        sys.stderr.write(f"fray: the actor cannot be registered: {err}\n")
        self.status = CONSTRUCTION_FAILED if invalid else 1
        self.over.set()


class HostCluster:
    """The cluster as a host uses it: registering does not wait until a controller leads."""

    def __init__(self, cluster: Cluster, rejected: Callable[[Exception], None]) -> None:
        self._cluster = cluster
        self.metadata = HostMetadata(cluster.metadata, rejected)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def stop(self) -> None:
        """Try to register no more."""
        self.metadata.stopped.set()


class HostMetadata:
    """A registry at which registering goes on in the background while no controller leads.

    The actor counts as registered meanwhile: a stack without a controller has actors all the same. Clients
    that know an address call it, and names resolve once a controller leads. A rejection then ends the host.
    """

    def __init__(self, metadata: Metadata, rejected: Callable[[Exception], None]) -> None:
        self._metadata, self._rejected = metadata, rejected
        self.stopped = threading.Event()
        self._unwanted: set[ActorId] = set()
        remote = sys.modules.get("fray.cluster.remote.metadata")  # which a LocalCluster does without
        self._at_once: dict[str, Any] = (
            {"wait": False} if remote and isinstance(metadata, remote.FrayMetadata) else {}
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._metadata, name)

    def register(
        self, name: str, address: str, job_id: JobId, metadata: Mapping[str, str] | None = None, **rest: Any
    ) -> ActorId:
        """Make an endpoint known, see Metadata.register, or see to it that it will be."""

        def register() -> ActorId:
            return self._metadata.register(name, address, job_id, metadata, **rest, **self._at_once)

        pauses = _growing(_FIRST_PAUSE, _LONGEST_PAUSE)
        while True:
            try:
                return register()
            except NoControllerError:
                known: ActorId | None = rest.get("actor_id")
                if known is None:
                    raise
                thread = threading.Thread(target=self._hope, args=[known, register], daemon=True)
                thread.start()
                return known
            except ClusterUnavailableError:
                if self.stopped.wait(next(pauses)):
                    raise

    def _hope(self, actor_id: ActorId, register: Callable[[], ActorId]) -> None:
        for pause in _growing(_FIRST_HOPE, _LONGEST_HOPE):
            if self.stopped.wait(pause) or actor_id in self._unwanted:
                return
            with contextlib.suppress(ClusterUnavailableError):
                try:
                    register()
                except ClusterError as err:
                    if isinstance(err, ClusterUnavailableError):
                        raise
                    self._rejected(err)
                if actor_id in self._unwanted:  # meanwhile
                    self._metadata.unregister(actor_id)
                return

    def unregister(self, actor_id: ActorId) -> None:
        """Forget an endpoint if a controller leads; otherwise the end of the task removes it."""
        self._unwanted.add(actor_id)
        with contextlib.suppress(ClusterUnavailableError):
            self._metadata.unregister(actor_id, **self._at_once)


def _growing(first: float, longest: float) -> Iterator[float]:
    while True:
        yield first
        first = min(longest, 2 * first)
