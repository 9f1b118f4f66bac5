"""Ray as an engine. It is imported only where Ray is."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from parity import engine

ray: Any = import_module("ray")
problems: Any = import_module("ray.exceptions")

_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (problems.ActorUnavailableError, engine.LOST),
    (problems.ActorDiedError, engine.DEAD),
    (problems.TaskCancelledError, engine.CANCELLED),
    (problems.GetTimeoutError, engine.TIMEOUT),
    (TimeoutError, engine.TIMEOUT),
    (concurrent.futures.TimeoutError, engine.TIMEOUT),
)


class Ray:
    """The Ray cluster of this machine."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self._options: dict[Any, dict[str, Any]] = {}

    def create(self, actor_class: Any, *args: Any, name: str | None = None, **options: Any) -> Any:
        retries = options.pop("retries", 0)
        exceptions = options.pop("retry_exceptions", False)
        groups = options.pop("concurrency_groups", None)
        if options.pop("detached", False):
            options["lifetime"] = "detached"
        if name is not None:
            options["name"] = name
        remote = ray.remote(concurrency_groups=groups)(actor_class) if groups else ray.remote(actor_class)
        handle = remote.options(num_cpus=0, **options).remote(*args)
        return _Retrying(handle, retries, exceptions) if retries else handle

    def grouped(self, group: str) -> Callable[[Any], Any]:
        made: Callable[[Any], Any] = ray.method(concurrency_group=group)
        return made

    def get(self, futures: Any, timeout: float | None = None) -> Any:
        return ray.get(futures, timeout=timeout)

    def getter(self) -> Callable[[Any], Any]:
        got: Callable[[Any], Any] = ray.get
        return got

    def wait(
        self, futures: Sequence[Any], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        found: tuple[list[Any], list[Any]] = ray.wait(list(futures), num_returns=num_returns, timeout=timeout)
        return found

    def stream(self, method: Any, *args: Any) -> Iterator[Any]:
        for reference in method.options(num_returns="streaming").remote(*args):
            yield ray.get(reference)

    def stop_stream(self, stream: Any) -> None:
        stream.close()

    def cancel(self, future: Any) -> None:
        ray.cancel(future)

    def kill(self, handle: Any, no_restart: bool = True) -> None:
        ray.kill(getattr(handle, "_handle", handle), no_restart=no_restart)

    def find(self, name: str) -> Any:
        return ray.get_actor(name)

    def pool(self, handles: Sequence[Any]) -> Any:
        return import_module("ray.util").ActorPool(handles)

    @contextmanager
    def driver(self) -> Iterator[Any]:
        """Another program of the namespace, which leaves by the end of its input."""
        code = (
            "import sys, ray; from pathlib import Path; sys.path[:0] = sys.argv[3:]\n"
            "from parity.ray_engine import Ray\n"
            "ray.init(address=sys.argv[1], namespace=sys.argv[2], log_to_driver=False); kept = []\n"
            "from parity.actors import Counter\n"
            "for line in sys.stdin:\n"
            "    name, notes, detached = eval(line)\n"
            "    kept.append(Ray(Path('.')).create(Counter, 0, notes, name=name, detached=detached))\n"
            "    ray.get(kept[-1].read.remote()); print('made', flush=True)\n"
        )
        context = ray.get_runtime_context()
        words = [sys.executable, "-c", code, context.gcs_address, context.namespace, *sys.path]
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield _Driver(process)
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            process.wait()

    def named(self, error: BaseException) -> str:
        for kind, word in _WORDS:
            if isinstance(error, kind):
                made = kind is problems.ActorDiedError and "creation task" in str(error)
                return engine.UNMADE if made else word
        if isinstance(error, ValueError) and "Failed to look up actor" in str(error):
            return engine.UNKNOWN
        if isinstance(error, ValueError) and "already taken" in str(error):
            return engine.TAKEN
        return type(getattr(error, "cause", None) or error).__name__


class _Driver:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def create(self, _: Any, __: int, notes: str, name: str, detached: bool = False) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"({name!r}, {notes!r}, {detached!r})\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "made\n"


class _Retrying:
    """A handle whose calls may be retried."""

    def __init__(self, handle: Any, retries: int, exceptions: Any) -> None:
        self._handle, self._retries, self._exceptions = handle, retries, exceptions

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._handle, name)
        if name in ("lines", "read", "pid"):
            return method
        return _Method(method, self._retries, self._exceptions)


class _Method:
    def __init__(self, method: Any, retries: int, exceptions: Any) -> None:
        self._method, self._retries, self._exceptions = method, retries, exceptions

    def remote(self, *args: Any) -> Any:
        options = {"max_task_retries": self._retries, "retry_exceptions": self._exceptions}
        return self._method.options(**options).remote(*args)
