"""Handles: what stands for an actor in programs that call it.

Sending calls is left to routes, and their results to futures.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fray._pb.actor_pb2 import Call
from fray.rpc import _background, _trace
from fray.rpc.codec import CodecError, encode_args
from fray.rpc.errors import EncodingError
from fray.rpc.future import ActorFuture
from fray.rpc.options import RpcOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fray.cluster.types import ActorId
    from fray.rpc._route import Route

_UNSET: Any = object()


class ActorMethod:
    """One method of an actor. Calling it waits for the result."""

    __slots__ = ("_name", "_options", "_route")

    def __init__(self, route: Route, name: str, options: RpcOptions) -> None:
        """Use a handle."""
        self._route, self._name, self._options = route, name, options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the method and return what it returned.

        Raises:
            ActorError: the call failed; the subclass is the kind of failure.
        """
        future = self._future(args, kwargs)
        self._route.submit(future, False)
        return future.wait_out()

    def remote(self, *args: Any, **kwargs: Any) -> ActorFuture[Any]:
        """Call the method and return at once.

        Where more than 10,000 calls, or 256 MiB of their arguments, wait for the actor to be found, this one
        waits until there is room, or the call is over.

        Arrays and `bytearray`s of 8 KiB and more are sent from where they are, again too if the connection
        breaks: do not write to them before the call has ended. What is smaller is copied at once.

        Raises:
            EncodingError: no codec carries an argument. All else that goes wrong is in the future.
        """
        future = self._future(args, kwargs)
        if future.deadline is not None:
            _background.deadlines().add(future.deadline, future)
        self._route.submit(future, True)
        return future

    def options(
        self,
        *,
        timeout: float | None = _UNSET,
        retries: int = _UNSET,
        idempotent: bool = _UNSET,
        resolve_timeout: float = _UNSET,
        stream_window: int = _UNSET,
    ) -> ActorMethod:
        """Return the method with other options for its calls, see RpcOptions."""
        changes = _changes(
            timeout=timeout,
            retries=retries,
            idempotent=idempotent,
            resolve_timeout=resolve_timeout,
            stream_window=stream_window,
        )
        return ActorMethod(self._route, self._name, replace(self._options, **changes))

    def _future(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ActorFuture[Any]:
        route, options = self._route, self._options
        codec = options.codec
        try:
            data, buffers = encode_args(codec, args, kwargs)
        except CodecError as err:
            raise EncodingError(err.problem, actor=route.name, method=self._name, argument=err.path) from err
        call = Call(actor=route.name, method=self._name, codec=codec, args=data)  # type: ignore[arg-type]
        if trace := _trace.current():
            call.trace = trace
        if options.stream_window:
            call.stream.window_items, call.stream.or_one = options.stream_window, True
        future: ActorFuture[Any] = ActorFuture(route, call, buffers, options)
        future.deadline = options.deadline()
        return future

    def __repr__(self) -> str:
        return f"<method {self._name} of actor {self._route.name}>"


class ActorHandle:
    """An actor, wherever it is. Its attributes are the methods that can be called.

        n = handle.increment(2)                # waits
        future = handle.increment.remote(2)    # does not
        n = await handle.increment.remote(2)   # in asyncio

    Calls are carried out in the order in which this process makes them, one after the other unless the actor
    allows more at once. The handle finds the actor again when it has moved or was restarted. It may be
    pickled and sent to other processes, also as an argument of a call. A method that has the name of an
    attribute of this class is `handle["name"]`.
    """

    def __init__(self, route: Route, options: RpcOptions) -> None:
        """Use a resolver."""
        self._route, self._options = route, options

    @property
    def name(self) -> str:
        """What the actor is registered as."""
        return self._route.name

    @property
    def namespace(self) -> str:
        """The namespace of the name, "" where it belongs to an address."""
        return self._route.directory.namespace

    @property
    def actor_id(self) -> ActorId:
        """The actor's incarnation, as far as it is known here. It is another one after a restart.

        Raises:
            UnknownActorError: it is nowhere.
        """
        from fray.cluster.types import ActorId

        return ActorId(self._route.endpoint(0).incarnation)

    @property
    def address(self) -> str:
        """Where the actor is now, host:port. Raises as `actor_id` does."""
        return self._route.endpoint(0).address

    def options(
        self,
        *,
        timeout: float | None = _UNSET,
        retries: int = _UNSET,
        idempotent: bool = _UNSET,
        resolve_timeout: float = _UNSET,
        stream_window: int = _UNSET,
    ) -> ActorHandle:
        """Return a handle of the same actor with other options for its calls, see RpcOptions."""
        changes = _changes(
            timeout=timeout,
            retries=retries,
            idempotent=idempotent,
            resolve_timeout=resolve_timeout,
            stream_window=stream_window,
        )
        return self.with_options(replace(self._options, **changes))

    def with_options(self, options: RpcOptions) -> ActorHandle:
        """Return a handle of the same actor whose calls have these options."""
        return ActorHandle(self._route, options)

    def __getattr__(self, name: str) -> ActorMethod:
        """Return a method."""
        if name.startswith("_"):
            raise AttributeError(f"underscore names such as {name!r} are not callable")
        method = ActorMethod(self._route, name, self._options)
        self.__dict__[name] = method  # so that the next time is quicker
        return method

    def __getitem__(self, name: str) -> ActorMethod:
        """Return a method, also one with the name of an attribute of handles."""
        return ActorMethod(self._route, name, self._options)

    def __fray_actor__(self) -> tuple[str, str, str, str]:
        """Return the handle as it travels: name, namespace, where it was last, which of several it is."""
        return self._route.reference()

    def __reduce__(self) -> tuple[Any, ...]:
        return self._route.on_actor.anywhere, (*self.__fray_actor__(), self._options)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ActorHandle):
            return NotImplemented
        return self._route.key == other._route.key

    def __hash__(self) -> int:
        return hash(self._route.key)

    def __repr__(self) -> str:
        where = f" of namespace {self.namespace}" if self.namespace else ""
        return f"<ActorHandle {self.name}{where}>"


def _changes(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not _UNSET}
