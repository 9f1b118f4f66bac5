"""fray as an engine: a client of whatever cluster, whose actors have processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fray.cluster import ActorNotFoundError, AlreadyExistsError
from fray.rpc import ActorPool, errors, method, wait
from fray.v2 import ActorCreationError, ActorHandle, ActorOptions, Client
from parity import engine

_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (ActorCreationError, engine.UNMADE),
    (AlreadyExistsError, engine.TAKEN),
    (ActorNotFoundError, engine.UNKNOWN),
    (errors.ActorDeadError, engine.DEAD),
    (errors.MaybeExecutedError, engine.LOST),
    (CancelledError, engine.CANCELLED),
    (TimeoutError, engine.TIMEOUT),
)

_OF_CALLS = ("retries", "retry_exceptions")


class Fray:
    """A client of fray."""

    def __init__(
        self, scratch: Path, client: Client, another: Callable[[], AbstractContextManager[Client]]
    ) -> None:
        self.scratch, self._client, self._another = scratch, client, another
        self._made: list[ActorHandle] = []

    def create(self, actor_class: Any, *args: Any, name: str | None = None, **options: Any) -> Any:
        of_calls = {option: options.pop(option) for option in _OF_CALLS if option in options}
        if options.pop("detached", False):
            options["lifetime"] = "detached"
        options.setdefault("max_restarts", 0)  # as Ray's
        handle = self._client.create_actor(actor_class, *args, name=name, options=ActorOptions(**options))
        self._made.append(handle)
        return handle.options(**of_calls) if of_calls else handle

    def grouped(self, group: str) -> Callable[[Any], Any]:
        return method(concurrency_group=group)

    def get(self, futures: Any, timeout: float | None = None) -> Any:
        if isinstance(futures, list):
            return [future.result(timeout) for future in futures]
        return futures.result(timeout)

    def getter(self) -> Callable[[Any], Any]:
        return _result

    def wait(
        self, futures: Sequence[Any], num_returns: int = 1, timeout: float | None = None
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        return wait(futures, num_returns, timeout)

    def stream(self, method: Any, *args: Any) -> Iterator[Any]:
        return iter(method.remote(*args))

    def stop_stream(self, stream: Iterator[Any]) -> None:
        stream.close()  # type: ignore[attr-defined]

    def cancel(self, future: Any) -> None:
        future.cancel()

    def kill(self, handle: Any, no_restart: bool = True) -> None:
        self._client.kill(handle, no_restart=no_restart)

    def find(self, name: str) -> Any:
        return self._client.get_actor(name)

    def pool(self, handles: Sequence[Any]) -> Any:
        return ActorPool(handles)

    @contextmanager
    def driver(self) -> Iterator[Any]:
        with self._another() as client:
            yield Fray(self.scratch, client, self._another)

    def named(self, error: BaseException) -> str:
        for kind, word in _WORDS:
            if isinstance(error, kind):
                return word
        return type(error).__name__

    def end(self) -> None:
        """End the actors that a scenario has made."""
        for handle in self._made:
            engine.ends(self, partial(self._client.kill, handle))


def _result(future: Any) -> Any:
    return future.result()
