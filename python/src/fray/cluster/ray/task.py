"""One task of one attempt, on the node where it runs."""

from __future__ import annotations

import collections
import contextlib
import os
import shutil
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fray import _termination
from fray.cluster.ray.actors.identities import shown
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.output import Shipping
from fray.cluster.ray.prepare import Prepared, prepare
from fray.cluster.ray.process import Exit, Process
from fray.cluster.ray.records import Job, Place, Started, TaskEnd
from fray.cluster.ray.variables import Seat, variables_of, without_workers
from fray.cluster.ray.venvs import Run, SetupError
from fray.cluster.types import TaskState, Termination, TerminationCause

_COORDINATOR_PORT = 8476  # of a job alone on a TPU slice, where no other may listen
_LOOK = 10.0  # seconds between two questions whether the attempt is still wanted


class Task:
    """Prepares and runs a program, ships what it writes, and reports how it ended."""

    def __init__(
        self,
        job: Job,
        started: Started,
        index: int,
        places: Sequence[Place],
        registry: Calls,
        coordinator: str = "",
    ) -> None:
        self._job, self._started, self._index, self._places = job, started, index, tuple(places)
        self._registry, self._coordinator = registry, coordinator
        self._lock = threading.Lock()
        self._process: Process | None = None
        self._stopped = False
        self._late = ""  # why it was stopped by itself
        self._over = threading.Event()

    def run(self) -> TaskEnd:
        """Run it to its end."""
        home = Path(os.environ["FRAY_RAY_HOME"]) / "tasks"
        name = f"{self._job.job_id.replace('/', '_')}.{self._started.attempt}.{self._index}"
        directory = home / name
        shutil.rmtree(directory, ignore_errors=True)
        try:
            home.mkdir(parents=True, exist_ok=True)
            directory.mkdir(mode=0o700)  # the project, the callable and the identity are the user's
        except OSError as err:
            return TaskEnd(self._index, TaskState.FAILED, f"set-up failed: {err}")
        try:
            return self._run(directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _run(self, directory: Path) -> TaskEnd:
        shipping = Shipping(self._registry, self._job.job_id, self._started.attempt, self._index)
        record = directory / "end.json"
        try:
            base = without_workers(os.environ)
            prepared = prepare(self._job, self._started, directory, base, self._setting_up(shipping))
            environ = {**self._environ(prepared, record), **shown(self._started.identity, directory)}
            with self._lock:
                if self._stopped:
                    return self._killed()
                self._process = Process(prepared.words, environ, str(prepared.directory), shipping.write)
        except SetupError as err:
            if self._stopped:
                return self._killed()
            shipping.write(f"fray: {err}\n".encode())
            termination = Termination(err.cause, str(err)) if err.cause else None
            return self._end(TaskState.FAILED, f"set-up failed: {err}", None, shipping, termination)
        except Exception as err:  # such as a disk that is full: another attempt may do better
            what = f"{type(err).__qualname__}: {err}"
            shipping.write(f"fray: {what}\n".encode())
            return self._end(TaskState.FAILED, f"set-up failed: {what}", None, shipping, None)
        finally:
            if self._process is None:
                shipping.close()
        return self._follow(self._process, shipping, record)

    def _setting_up(self, shipping: Shipping) -> Run:
        """Return what runs programs that prepare the task, which end when it is stopped."""

        def run(
            words: Sequence[str], environ: Mapping[str, str], directory: Path
        ) -> tuple[Exit, Sequence[str]]:
            written: list[bytes] = []  # which is shown where it failed
            with self._lock:
                if self._stopped:
                    return Exit(143, "it was stopped"), ()
                self._process = process = Process(words, environ, str(directory), written.append)
            end = process.wait()
            with self._lock:
                self._process = None
            if end.code:
                shipping.write(b"".join(written))
            return end, shipping.tail()

        return run

    def _follow(self, process: Process, shipping: Shipping, record: Path) -> TaskEnd:
        threading.Thread(target=self._watch, daemon=True, name="fray watch").start()
        end = process.wait()
        self._over.set()
        shipping.close()
        return self._ended(end, shipping, _termination.read(record))

    def _environ(self, prepared: Prepared, record: Path) -> dict[str, str]:
        import ray

        own = {**prepared.variables, **self._started.environment.variables}
        address = ray.get_runtime_context().gcs_address
        seat = Seat(
            self._job,
            self._started.attempt,
            self._index,
            self._places,
            coordinator=self._coordinator or f"{self._places[0].address}:{_COORDINATOR_PORT}",
            spec=f"ray:{address}",
        )
        environ = variables_of(seat, os.environ, own, _ports(self._job.launch.request.ports))
        prepared.extend(environ)
        environ[_termination.VARIABLE] = str(record)
        return environ

    def _ended(self, end: Exit, shipping: Shipping, termination: Termination | None) -> TaskEnd:
        with self._lock:
            stopped, late = self._stopped, self._late
        if late:
            return self._end(TaskState.FAILED, late, end.code, shipping, None)
        if stopped:
            return self._end(TaskState.KILLED, "it was stopped", end.code, shipping, None)
        if end.code == 0:
            return self._end(TaskState.SUCCEEDED, "", 0, shipping, None)
        if not end.started:
            termination = Termination(TerminationCause.PROGRAM_MISSING, end.reason)
        reason = (
            end.reason if termination is None or not end.started else f"{end.reason}: {termination.message}"
        )
        return self._end(TaskState.FAILED, reason, end.code, shipping, termination)

    def _end(
        self,
        state: TaskState,
        reason: str,
        code: int | None,
        shipping: Shipping,
        termination: Termination | None,
    ) -> TaskEnd:
        return TaskEnd(self._index, state, reason, code, shipping.tail(), termination)

    def _killed(self) -> TaskEnd:
        return TaskEnd(self._index, TaskState.KILLED, "it was stopped before it ran")

    def _watch(self) -> None:
        """End the program when its attempt is not wanted any more, or takes too long."""
        limit = self._job.launch.request.timeout_seconds
        began = time.monotonic()
        while True:
            left = _LOOK if limit is None else min(_LOOK, began + limit - time.monotonic())
            if self._over.wait(max(0.0, left)):
                return
            if limit is not None and time.monotonic() - began >= limit:
                with self._lock:
                    self._late = self._late or f"it ran longer than {limit:g} s, which is its timeout"
                self.stop(self._job.grace)
                return
            with contextlib.suppress(Exception):
                if not self._registry.call("wanted", self._job.job_id, self._started.attempt):
                    self.stop(self._job.grace)

    def stop(self, grace: float) -> None:
        """Have it end, by force after so many seconds, and return at once."""
        with self._lock:
            self._stopped = True
            process = self._process
        if process is not None:
            process.stop(grace)


def _ports(names: Sequence[str]) -> Mapping[str, int]:
    """Return free ports for the names that a job asks for."""
    found: dict[str, int] = collections.OrderedDict()
    with contextlib.ExitStack() as held:  # all at once, so that they differ
        for name in names:
            listener = held.enter_context(socket.socket())
            listener.bind(("", 0))
            found[name] = listener.getsockname()[1]
    return found
