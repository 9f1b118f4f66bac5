"""A LocalCluster as its processes see it: calls over a socket that only this user may open.

The FRAY_CLUSTER_SPEC of such a process is local:PATH of that socket. Only processes that the cluster
started connect to it; what they send is pickled.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, overload

import cloudpickle

from fray import _pickling
from fray.cluster.context import JobContext, job_context, job_scope
from fray.cluster.errors import ClusterUnavailableError
from fray.cluster.protocols import Cluster, Metadata
from fray.cluster.types import (
    ActorEndpoint,
    ActorId,
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    Namespace,
    PythonCall,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
)
from fray.cluster.watch import Ending, Watch


@dataclass(frozen=True)
class _Call:
    context: JobContext | None
    of_metadata: bool
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Server:
    """Answers the processes of a cluster."""

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self._cluster, self._path = cluster, path
        self._lock = threading.Lock()
        self._connections: set[Connection[Any, Any]] = set()
        self._closed = False
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen(64)
        self.spec = f"local:{path}"
        threading.Thread(target=self._accept, name="fray local cluster", daemon=True).start()

    def close(self) -> None:
        """Take no more connections, and end those that there are."""
        with self._lock:
            self._closed = True
            for connection in self._connections:
                _end(connection)
        # Closing a socket does not wake a thread that waits for it.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(self._path))

    def _accept(self) -> None:
        with self._socket:
            while True:
                accepted, _ = self._socket.accept()
                connection: Connection[Any, Any] = Connection(accepted.detach())
                with self._lock:
                    if self._closed:
                        connection.close()
                        return
                    self._connections.add(connection)
                threading.Thread(
                    target=self._answer, args=[connection], name="fray local calls", daemon=True
                ).start()

    def _answer(self, connection: Connection[Any, Any]) -> None:
        try:
            while True:
                call: _Call = cloudpickle.loads(connection.recv_bytes())
                for reply in self._carry_out(call, connection):
                    connection.send_bytes(cloudpickle.dumps(reply))
        except (EOFError, OSError):
            pass  # the process has ended
        finally:
            with self._lock:  # or another's descriptor might be ended
                self._connections.discard(connection)
                connection.close()

    def _carry_out(self, call: _Call, connection: Connection[Any, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the replies to a call: each is what kind it is, and its content."""
        if call.context is None:
            yield from self._replies(call, connection)
            return
        with job_scope(call.context, self._cluster):
            yield from self._replies(call, connection)

    def _replies(self, call: _Call, connection: Connection[Any, Any]) -> Iterator[tuple[str, Any]]:
        try:
            target = self._cluster.metadata if call.of_metadata else self._cluster
            value = getattr(target, call.method)(*call.args, **call.kwargs)
            if isinstance(value, Watch):
                threading.Thread(
                    target=_close_with, args=[value, connection], name="fray local watch", daemon=True
                ).start()
                for item in value:
                    yield "item", item
            yield "value", None if isinstance(value, Watch) else value
        except Exception as err:
            yield "error", err


def _close_with(watch: Watch, connection: Connection[Any, Any]) -> None:
    """End a watch when its process, which sends nothing more on this connection, ends that."""
    with contextlib.suppress(OSError):  # it is closed already
        connection.poll(None)
    watch.close()


def _end(connection: Connection[Any, Any]) -> None:
    """End both directions of a connection, so that a thread that waits for it returns."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


def connect(spec: str) -> Cluster:
    """Return the cluster that the FRAY_CLUSTER_SPEC of one of its processes names."""
    return _Remote(_Caller(spec.removeprefix("local:")))


class _Caller:
    """Makes calls, each thread over a connection of its own, as answers may take long."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._local = threading.local()

    def call(self, method: str, *args: Any, of_metadata: bool = False, **kwargs: Any) -> Any:
        try:
            kind, content = self._exchange(_Call(_context(), of_metadata, method, args, kwargs))
        except BaseException as err:
            self._local.connection = None  # an answer may be on its way to it
            if isinstance(err, (EOFError, OSError)):
                reason = str(err) or "its process has ended"
                raise ClusterUnavailableError(self._path, 1, 0, reason) from err
            raise
        if kind == "error":
            raise content
        return content

    def _exchange(self, call: _Call) -> tuple[str, Any]:
        connection: Connection[Any, Any] | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = Client(self._path, family="AF_UNIX")
        connection.send_bytes(cloudpickle.dumps(call))
        reply: tuple[str, Any] = cloudpickle.loads(connection.recv_bytes())
        return reply

    def stream(self, method: str, ending: Ending, **kwargs: Any) -> Iterator[Any]:
        with Client(self._path, family="AF_UNIX") as connection:
            ending.wakes(lambda: _end(connection))
            try:
                connection.send_bytes(cloudpickle.dumps(_Call(_context(), True, method, (), kwargs)))
                while True:
                    kind, content = cloudpickle.loads(connection.recv_bytes())
                    if kind != "item":
                        break
                    yield content
            except (EOFError, OSError):
                if ending.over:
                    return
                raise
            finally:
                ending.wakes(lambda: None)
            if kind == "error":
                raise content


def _context() -> JobContext | None:
    context = job_context()
    return replace(context, environ={}) if context else None


def _check_pickles(request: JobRequest) -> None:
    """Raise PickleError, which names what is wrong, if the request cannot be sent."""
    if isinstance(request.entrypoint.kind, PythonCall):
        _pickling.dump(request.entrypoint.kind)


class _Remote:
    """The cluster, by calls."""

    def __init__(self, caller: _Caller) -> None:
        self._caller = caller

    def launch(self, request: JobRequest) -> JobId:
        _check_pickles(request)
        return JobId(self._caller.call("launch", request))

    def launch_group(
        self,
        requests: Sequence[JobRequest],
        group: JobGroupConfig,
        reservation_id: ReservationId | None = None,
    ) -> list[JobId]:
        for request in requests:
            _check_pickles(request)
        return list(self._caller.call("launch_group", list(requests), group, reservation_id))

    def monitor(self, job_id: JobId) -> JobInfo:
        return self.wait(job_id)

    def poll(self, job_id: JobId) -> JobInfo:
        info: JobInfo = self._caller.call("poll", job_id)
        return info

    def terminate(self, job_id: JobId) -> None:
        self._caller.call("terminate", job_id)

    def list_jobs(self) -> list[JobInfo]:
        return list(self._caller.call("list_jobs"))

    @overload
    def wait(
        self, job_id: JobId, raise_on_failure: bool = False, *, timeout: float | None = None
    ) -> JobInfo: ...
    @overload
    def wait(
        self,
        job_id: list[JobId] | tuple[JobId, ...],
        raise_on_failure: bool = False,
        *,
        timeout: float | None = None,
    ) -> list[JobInfo]: ...
    def wait(
        self,
        job_id: JobId | Sequence[JobId],
        raise_on_failure: bool = False,
        *,
        timeout: float | None = None,
    ) -> JobInfo | list[JobInfo]:
        found: JobInfo | list[JobInfo] = self._caller.call("wait", job_id, raise_on_failure, timeout=timeout)
        return found

    def await_actor(self, name: str, namespace: str, seconds: float) -> bool:
        return bool(self._caller.call("await_actor", name, namespace, seconds))

    def create_reservation(self, config: ReservationConfig) -> ReservationId:
        return ReservationId(self._caller.call("create_reservation", config))

    def release_reservation(self, reservation_id: ReservationId) -> None:
        self._caller.call("release_reservation", reservation_id)

    def get_reservation(self, reservation_id: ReservationId) -> ReservationInfo:
        info: ReservationInfo = self._caller.call("get_reservation", reservation_id)
        return info

    def actor_secret(self, namespace: str) -> bytes:
        secret: bytes = self._caller.call("actor_secret", namespace)
        return secret

    @property
    def namespace(self) -> Namespace:
        context = job_context()
        return context.namespace if context else Namespace("default")

    @property
    def metadata(self) -> Metadata:
        return _RemoteMetadata(self._caller, self.namespace)


class _RemoteMetadata:
    """The registry, by calls."""

    def __init__(self, caller: _Caller, namespace: Namespace) -> None:
        self._caller, self.namespace = caller, namespace

    def register(
        self,
        name: str,
        address: str,
        job_id: JobId,
        metadata: Mapping[str, str] | None = None,
        *,
        actor_id: ActorId | None = None,
        unique: bool = False,
        ttl: float | None = None,
        task: int | None = None,
    ) -> ActorId:
        made = self._caller.call(
            "register",
            name,
            address,
            job_id,
            metadata,
            actor_id=actor_id,
            unique=unique,
            ttl=ttl,
            task=task,
            of_metadata=True,
        )
        return ActorId(made)

    def unregister(self, actor_id: ActorId) -> None:
        self._caller.call("unregister", actor_id, of_metadata=True)

    def lookup(self, name: str) -> ActorEndpoint:
        endpoint: ActorEndpoint = self._caller.call("lookup", name, of_metadata=True)
        return endpoint

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        return list(self._caller.call("lookup_all", name, of_metadata=True))

    def list_actors(self, prefix: str = "") -> list[ActorEndpoint]:
        return list(self._caller.call("list_actors", prefix, of_metadata=True))

    def watch(self, name: str = "", prefix: str = "", *, job_id: JobId | None = None) -> Watch:
        def changes(ending: Ending) -> Iterator[Any]:
            return self._caller.stream("watch", ending, name=name, prefix=prefix, job_id=job_id)

        return Watch(changes)
