"""Hosts an actor in the process of a Ray actor, so that it takes no second interpreter.

The registry starts one for each attempt. It reports in before it does anything, and is told then whether it
is wanted: a process that Ray started late, or on a node that was thought dead, makes no actor.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from fray import _pickling, _termination
from fray._host_run import CONSTRUCTION_FAILED, Hosting, construct, report
from fray.cluster.errors import ClusterError
from fray.cluster.ray.actors.metadata import RayMetadata
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.host import payload_of, value_of
from fray.cluster.ray.naming import REGISTRY, hosted
from fray.cluster.ray.output import Shipping
from fray.cluster.ray.prepare import prepare
from fray.cluster.ray.private import write_private
from fray.cluster.ray.records import Job, Place, Started, TaskEnd
from fray.cluster.ray.variables import Seat, variables_of
from fray.cluster.ray.venvs import SetupError
from fray.cluster.types import Namespace, TaskState, Termination, TerminationCause

_TIMEOUT = 600.0  # seconds that the registry may be away
_SOON = 30.0  # seconds within which the registry answers, unless its process has died
_LAST = 3.0  # seconds for which a process that exits waits for the registry
_LOOK = 5.0  # seconds between two questions whether the attempt is still wanted


@dataclass(frozen=True)
class Beginning:
    """What a host is told when it reports in."""

    job: Job
    started: Started


class ActorHost:
    """One attempt at hosting an actor."""

    def __init__(self, namespace: str, package: str, name: str) -> None:  # noqa: ARG002
        """Begin at once: `run` is called when Ray has told the registry that this process is there."""
        import ray

        self._ray: Any = ray
        which = hosted(name)
        assert which is not None
        self._job_id, self._attempt = which
        self._namespace = namespace
        self._holder = f"{os.getpid()}-{secrets.token_hex(8)}"
        self._registry = Calls(lambda: ray.get_actor(REGISTRY, namespace=namespace), "Ray", _TIMEOUT)
        self._lock = threading.Lock()
        self._end: TaskEnd | None = None
        self._serving: Any = None
        self._stopped = threading.Event()
        threading.Thread(target=self.run, name="fray host", daemon=True).start()

    def run(self) -> TaskEnd:
        """Host the actor until its end; a second call waits for that."""
        with self._lock:
            if self._end is None:
                self._end = self._run()
            return self._end

    def stop(self) -> None:
        """Have it finish its calls and end."""
        self._stopped.set()
        if self._serving is not None:
            self._serving.end()

    def _run(self) -> TaskEnd:
        context = self._ray.get_runtime_context()
        place = Place(context.get_node_id(), self._ray.util.get_node_ip_address())
        begun = self._begun(place)
        if begun is None:
            return TaskEnd(0, TaskState.KILLED, "it is not wanted any more")
        home = Path(os.environ["FRAY_RAY_HOME"]) / "actors"
        home.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(dir=home))
        shipping = Shipping(self._registry, self._job_id, begun.started.attempt, 0)
        try:
            with _shipped_output(shipping):
                return self._host(begun, place, directory, shipping)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
            shipping.close()

    def _begun(self, place: Place) -> Beginning | None:
        """Report in, and import meanwhile what serves actors; None: this attempt is not wanted."""
        args = ("begin_host", self._job_id, self._attempt, self._holder, place)
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            reference = self._registry.handle().call.remote("actors", payload_of(*args))
            import_module("fray._host_serve")
            answer: Beginning | None = value_of(self._ray.get(reference, timeout=_SOON))
            return answer
        begun: Beginning | None = self._registry.call("actors", *args)  # as often as it takes
        return begun

    def _host(self, begun: Beginning, place: Place, directory: Path, shipping: Shipping) -> TaskEnd:
        record = directory / "end.json"
        try:
            self._prepare(begun, place, directory)
        except SetupError as err:
            return self._failed(
                f"set-up failed: {err}", Termination(err.cause, str(err)) if err.cause else None
            )
        except Exception as err:  # such as a disk that is full: another attempt may do better
            report(err)
            return self._failed(f"set-up failed: {type(err).__qualname__}: {err}", None)
        try:
            call = _pickling.load(Path(os.environ["FRAY_CALLABLE"]).read_bytes())
        except _pickling.CallableError as err:
            return self._failed(str(err), Termination(TerminationCause.CALLABLE_INVALID, str(err)))
        except Exception as err:  # of the code that unpickling runs
            report(err)
            what = f"it cannot be unpickled: {type(err).__qualname__}: {err}"
            return self._failed(what, Termination(TerminationCause.CALLABLE_REFUSED, what))
        actor_class, args, kwargs, hosting = call.args
        self._record_exits()
        threading.Thread(target=self._watch, daemon=True, name="fray watch").start()
        try:
            actor = construct(actor_class, args, kwargs)
        except Exception as err:
            report(err)
            status = CONSTRUCTION_FAILED
        else:
            status = self._serve(actor, hosting)
        end = _termination.read(record)
        if status == 0 or self._stopped.is_set():
            return TaskEnd(
                0, TaskState.KILLED if self._stopped.is_set() else TaskState.SUCCEEDED, exit_code=0
            )
        reason = f"exit status {status}" + (f": {end.message}" if end else "")
        return self._failed(reason, end, status, shipping.tail())

    def _failed(
        self, reason: str, end: Termination | None, status: int = 2, tail: tuple[str, ...] = ()
    ) -> TaskEnd:
        return TaskEnd(0, TaskState.FAILED, reason, status, tail, end)

    def _prepare(self, begun: Beginning, place: Place, directory: Path) -> None:
        """Make the environment of this process that of the job's task."""
        environment = begun.started.environment
        prepared = prepare(begun.job, begun.started, directory, os.environ, _run_nothing)
        identity = directory / "identity.pem"
        write_private(identity, begun.started.identity)
        seat = Seat(
            begun.job,
            begun.started.attempt,
            0,
            (place,),
            spec=f"ray:{self._ray.get_runtime_context().gcs_address}",
        )
        own = {**prepared.variables, **environment.variables}
        environ = variables_of(seat, os.environ, own, {})
        prepared.extend(environ)
        environ["FRAY_ACTOR_IDENTITY"] = str(identity)
        environ[_termination.VARIABLE] = str(directory / "end.json")
        os.environ.update(environ)
        sys.path[:0] = [
            path for path in (str(prepared.directory), *prepared.python_path) if path not in sys.path
        ]
        os.chdir(prepared.directory)

    def _serve(self, actor: Any, hosting: Hosting) -> int:
        from fray._host_serve import Serving

        try:
            self._serving = Serving(_Surrounding(self._registry, Namespace(self._namespace)), actor, hosting)
        except (OSError, ValueError, ClusterError) as err:
            sys.stderr.write(f"fray: the actor cannot be served: {err}\n")
            return 1
        if self._stopped.is_set():
            self._serving.end()
        return int(self._serving.wait())

    def _watch(self) -> None:
        """End this process when the registry has gone on without it, as when its node was thought dead."""
        job_id, attempt = self._job_id, self._attempt
        while not self._stopped.wait(_LOOK):
            with contextlib.suppress(ClusterError):
                if not self._registry.call("actors", "is_wanted", job_id, attempt):
                    os.kill(os.getpid(), 9)

    def _record_exits(self) -> None:
        """Have the registry know the status of an exit of this process, which Ray does not report."""
        leave = os._exit

        def leave_recorded(status: int) -> NoReturn:
            state = TaskState.FAILED if status else TaskState.SUCCEEDED
            end = TaskEnd(0, state, f"exit status {status}" if status else "", status)
            with contextlib.suppress(Exception):
                registry = self._ray.get_actor(REGISTRY, namespace=self._namespace)
                payload = payload_of("exiting", self._job_id, self._attempt, end)
                self._ray.get(registry.call.remote("actors", payload), timeout=_LAST)
            leave(status)

        os._exit = leave_recorded


def _run_nothing(words: Sequence[str], environ: Mapping[str, str], directory: Path) -> NoReturn:
    """Refuse to run a program of a set-up: what needs another Python is no matter of this process."""
    del environ, directory
    raise SetupError(f"{words[0]} is to be run in the process of an actor")


class _Surrounding:
    """The cluster as its hosts use it: the registry of actors at once, and all else when it is first used."""

    def __init__(self, registry: Calls, namespace: Namespace) -> None:
        self.namespace = namespace
        self.metadata = RayMetadata(registry, namespace)

    def __getattr__(self, name: str) -> Any:
        from fray.cluster.current import current_cluster

        return getattr(current_cluster(), name)


@contextlib.contextmanager
def _shipped_output(shipping: Shipping) -> Iterator[None]:
    """Send what this process writes, besides to Ray's log of it."""
    kept = [os.dup(1), os.dup(2)]
    reading, writing = os.pipe()
    for number in (1, 2):
        os.dup2(writing, number)
    os.close(writing)

    def ship() -> None:
        while part := os.read(reading, 1 << 16):
            shipping.write(part)
            with contextlib.suppress(OSError):
                os.write(kept[0], part)

    thread = threading.Thread(target=ship, daemon=True, name="fray output")
    thread.start()
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
        thread.join(1.0)  # children may hold the pipe open
