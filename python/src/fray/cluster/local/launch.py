"""How tasks of a LocalCluster are made from requests."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fray import _pickling, _termination
from fray.cluster.local.job import Job
from fray.cluster.local.task import ProcessTask, Task, ThreadTask
from fray.cluster.protocols import Cluster
from fray.cluster.types import Command, PythonCall

if TYPE_CHECKING:
    from fray.cluster.local.remote import Server


class TaskMaker:
    """Makes tasks: threads, or processes that reach the cluster through a socket in a private directory."""

    def __init__(self, cluster: Cluster, use_processes: bool) -> None:
        self._cluster = cluster
        self._use_processes = use_processes
        self._lock = threading.Lock()
        self._dir: Path | None = None
        self._owner = 0  # the process whose directory it is
        self._server: Server | None = None

    def check(self, job: Job) -> None:
        """Make what tasks of a job need, so that launching fails rather than the task.

        Raises:
            PickleError: its callable cannot be pickled and has to be.
        """
        kind = job.request.entrypoint.kind
        if isinstance(kind, PythonCall) and self._use_processes:
            self._file(job).write_bytes(_pickling.dump(kind))

    def discard(self, job: Job) -> None:
        """Remove what `check` made."""
        if isinstance(job.request.entrypoint.kind, PythonCall) and self._use_processes:
            self._file(job).unlink(missing_ok=True)

    def task(self, job: Job, index: int) -> Task:
        """Return a task of a job's last attempt."""
        environ = {**os.environ, **job.environ, **job.context(index).variables()}
        environ.update(_ports(job))
        environ.pop(_termination.VARIABLE, None)  # of the task that this process may be
        kind = job.request.entrypoint.kind
        if isinstance(kind, PythonCall) and not self._use_processes:
            return ThreadTask(kind, replace(job.context(index), environ=environ), self._cluster)
        environ["FRAY_CLUSTER_SPEC"] = self._spec()
        environ["FRAY_CLUSTER_ADDRESS"] = self._spec().removeprefix("local:")
        environ["PYTHONUNBUFFERED"] = "1"
        environ[_termination.VARIABLE] = str(self._end_of(job, index))
        if isinstance(kind, Command):
            return ProcessTask(kind.words, environ)
        # It imports what this process can.
        environ["PYTHONPATH"] = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        environ["FRAY_CALLABLE"] = str(self._file(job))
        return ProcessTask([sys.executable, "-m", "fray._callable"], environ)

    def _file(self, job: Job) -> Path:
        return self._home() / job.job_id.replace("/", "_")

    def _end_of(self, job: Job, index: int) -> Path:
        """Return the file in which a task of a job's last attempt may record why it failed."""
        return self._home() / f"{job.job_id.replace('/', '_')}.{job.attempt}.{index}.end"

    def _home(self) -> Path:
        with self._lock:
            if self._dir is None:
                self._dir, self._owner = Path(tempfile.mkdtemp(prefix="fray-")), os.getpid()
                atexit.register(self.close)
            return self._dir

    def close(self) -> None:
        """Serve processes no more, and remove the directory. Both are there again when they are needed.

        A process that was forked from the one which made them leaves them alone.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            server, self._server = self._server, None
            home, self._dir = self._dir, None
        atexit.unregister(self.close)
        if server is not None:
            server.close()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)

    def _spec(self) -> str:
        """Return the FRAY_CLUSTER_SPEC of processes, for which this begins to serve them."""
        from fray.cluster.local.remote import Server

        home = self._home()
        with self._lock:
            if self._server is None:
                self._server = Server(self._cluster, home / "cluster.sock")
            return self._server.spec


def _ports(job: Job) -> dict[str, str]:
    """Return free ports for the names that a job asks for."""
    found = {}
    with contextlib.ExitStack() as held:  # all at once, so that they differ
        for name in job.request.ports:
            listener = held.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            found[f"FRAY_PORT_{name.upper().replace('-', '_')}"] = str(listener.getsockname()[1])
    return found
