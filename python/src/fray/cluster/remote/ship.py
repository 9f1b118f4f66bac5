"""What a request needs on the cluster besides itself: its project and its callable."""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from fray import _pickling
from fray._pb import cluster_pb2 as pb
from fray.cluster.context import context_of
from fray.cluster.lockfile import check_lock
from fray.cluster.project import asks, nearest_project, uv_of
from fray.cluster.remote.bundle import Blob, packed
from fray.cluster.remote.connection import Connection
from fray.cluster.types import Command, Entrypoint, EnvironmentConfig, JobRequest, PythonCall

_PART = 1 << 20  # bytes, the most that one message of an upload has
_log = logging.getLogger("fray")


class Shipper:
    """Uploads blobs that the cluster lacks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: set[str] = set()  # what the cluster has had
        self._warned = False

    def entrypoint(self, entrypoint: Entrypoint) -> pb.Entrypoint:
        """Return the message of an entrypoint, whose callable is on the cluster then.

        Raises:
            PickleError: the callable cannot be pickled.
        """
        kind = entrypoint.kind
        if isinstance(kind, Command):
            return pb.Entrypoint(command=pb.Command(words=kind.words))
        data = _pickling.dump(kind)
        blob = Blob(hashlib.sha256(data).hexdigest(), len(data), io.BytesIO(data))
        self._upload(blob)
        python = _pickling.python_version()
        return pb.Entrypoint(callable=pb.Callable(sha256=blob.sha256, name=kind.name, python=python))

    def environment(self, request: JobRequest) -> pb.Environment | None:
        """Return the message of an environment, whose project is on the cluster then; None: the parent's.

        Raises:
            InvalidRequestError: the project cannot be shipped.
        """
        in_job = context_of(os.environ) is not None
        given = request.environment
        if given is None and in_job:
            return None
        wanted = given or EnvironmentConfig()
        project = wanted.project or (None if in_job else nearest_project())
        message = pb.Environment(
            image=wanted.image or "", env_vars=dict(wanted.env_vars), inherit=in_job and wanted.inherit
        )
        if project is not None:
            if isinstance(request.entrypoint.kind, PythonCall):
                check_lock(Path(project, "uv.lock"))
            with packed(project) as blob:
                self._upload(blob)
                message.bundle = blob.sha256
        found = uv_of(wanted, project, in_job)
        if found is None and asks(wanted) and not self._warned:
            self._warned = True
            _log.warning(
                "no project is shipped, so that extras, groups and python of environments are left out"
            )
        if found is not None:
            uv = pb.UV(extras=found.extras, groups=found.groups, python=found.python)
            if not uv.python and isinstance(request.entrypoint.kind, PythonCall):
                uv.python = _pickling.python_version()  # which its pickle is tied to
            message.uv.CopyFrom(uv)
        return message

    def forget(self) -> bool:
        """Forget what the cluster has had, and return whether there was anything."""
        was, self._known = bool(self._known), set()
        return was

    def _upload(self, blob: Blob) -> None:
        if blob.sha256 in self._known:
            return
        self._connection.send(self._connection.cluster.Upload, lambda: _parts(blob))
        self._known.add(blob.sha256)


def _parts(blob: Blob) -> Iterator[pb.UploadRequest]:
    """Yield an upload. The cluster may answer after the first message, which has no data, that it has it."""
    yield pb.UploadRequest(sha256=blob.sha256, size=blob.size)
    blob.content.seek(0)
    while part := blob.content.read(_PART):
        yield pb.UploadRequest(data=part)
