"""What a request needs on the cluster besides itself: its project, its callable, and fray."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from fray import _pickling
from fray._host_run import host_created
from fray.cluster.context import job_context
from fray.cluster.errors import AccessDeniedError, FieldError, InvalidRequestError
from fray.cluster.project import asks, nearest_project, uv_of
from fray.cluster.ray.connection import Connection
from fray.cluster.ray.demand import demand_of
from fray.cluster.ray.package import package
from fray.cluster.ray.records import Environment, Launch
from fray.cluster.ray.store import MAX_BLOB
from fray.cluster.types import Command, Entrypoint, EnvironmentConfig, JobRequest

_log = logging.getLogger("fray")


_SMALL = 64 << 10  # bytes


class Shipper:
    """Makes launches of requests, and sends the blobs that the cluster lacks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._held: dict[str, tuple[bytes, int]] = {}  # of launches that are being made, and of how many

    def launch(self, request: JobRequest) -> Launch:
        """Return the launch of a request.

        Raises:
            PickleError: the callable cannot be pickled.
            InvalidRequestError: Ray cannot do what it asks for.
            AccessDeniedError: a job asks for another namespace than its own.
        """
        _check(request)
        self._check_namespace(request)
        context = job_context()
        wanted = request.environment or EnvironmentConfig()
        kind, callable_, hosted = request.entrypoint.kind, "", False
        if not isinstance(kind, Command):
            callable_ = self._hold(_pickling.dump(kind))
            hosted = kind.function is host_created and demand_of(request).tasks == 1
            kind = Command(("python", "-m", "fray._callable"))
        return Launch(
            request=replace(request, entrypoint=Entrypoint(kind), environment=None),
            environment=self._environment(request, wanted),
            package=self._hold(package()[1]),
            callable=callable_,
            hosted=hosted,
            inherit=context is not None and wanted.inherit,
            parent=context.job_id if context else None,
            parent_attempt=context.attempt if context else 0,
        )

    def _environment(self, request: JobRequest, wanted: EnvironmentConfig) -> Environment:
        in_job = job_context() is not None
        project = wanted.project or (None if in_job else nearest_project())
        bundle = ""
        if project is not None:
            from fray.cluster.remote.bundle import packed  # with gRPC, which programs without a project spare

            with packed(project, MAX_BLOB) as blob:
                blob.content.seek(0)
                bundle = self._hold(blob.content.read())
        uv = uv_of(wanted, project, in_job)
        if uv is None and asks(wanted):
            _log.warning("no project is shipped, so that extras, groups and python are left out")
        if uv is not None and not uv.python and not isinstance(request.entrypoint.kind, Command):
            uv = replace(uv, python=_pickling.python_version())  # which its pickle is tied to
        return Environment(dict(wanted.env_vars), bundle, uv)

    def _check_namespace(self, request: JobRequest) -> None:
        own = self._connection.namespace
        if request.namespace not in (None, own):
            raise AccessDeniedError(
                f"this connection is of namespace {own}, and cannot launch a job in {request.namespace}; "
                f"connect with namespace={request.namespace!r}"
            )

    def _hold(self, content: bytes) -> str:
        if len(content) > MAX_BLOB:
            raise InvalidRequestError.of(
                "entrypoint",
                f"it has {len(content) >> 20} MiB, and a Ray cluster takes {MAX_BLOB >> 20}; "
                "put large values into files or a bucket",
            )
        sha256 = hashlib.sha256(content).hexdigest()
        with self._lock:
            self._held[sha256] = content, self._held.get(sha256, (content, 0))[1] + 1
        return sha256

    def small(self, launches: Sequence[Launch]) -> dict[str, bytes]:
        """Return the callables that are so small that they travel with the launch, which saves calls."""
        with self._lock:
            held = {launch.callable: self._held[launch.callable][0] for launch in launches if launch.callable}
        return {sha256: content for sha256, content in held.items() if len(content) <= _SMALL}

    def forget(self, launches: Sequence[Launch]) -> None:
        """Drop the blobs of launches that were made, or failed."""
        with self._lock:
            for sha256 in (blob for launch in launches for blob in launch.blobs):
                content, count = self._held[sha256]
                self._held[sha256] = content, count - 1
                if count == 1:
                    del self._held[sha256]

    def send(self, lacking: Sequence[str]) -> None:
        """Send blobs."""
        for sha256 in lacking:
            self._connection.ship(sha256, self._held[sha256][0])


def _check(request: JobRequest) -> None:
    found = []
    if request.environment is not None and request.environment.image:
        found.append(
            FieldError("environment.image", "a Ray cluster runs jobs without containers of their own")
        )
    if request.health_check is not None:
        found.append(
            FieldError("health_check", "a Ray cluster has none; have the program exit when it fails")
        )
    if request.reservation_id is not None:
        found.append(FieldError("reservation_id", "a Ray cluster has no reservations"))
    if found:
        raise InvalidRequestError("the request is invalid", found)
