"""Handles: what stands for an actor in programs that call it.

Sending calls is left to routes, and their results to futures.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, overload

from fray._pb.actor_pb2 import Call
from fray.rpc._calling.future_arguments import futures_among, resolved, with_futures, without_futures
from fray.rpc._transport import background as _background
from fray.rpc._transport import trace as _trace
from fray.rpc.codec import Codec, CodecError, decode_args, encode_args, encode_call
from fray.rpc.errors import ActorError, EncodingError
from fray.rpc.future import ActorFuture
from fray.rpc.options import RpcOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import ParamSpec, TypeVar

    from fray.cluster.types import ActorId
    from fray.rpc._calling.ongoing import Plain
    from fray.rpc._calling.route import Route
    from fray.rpc._transport.retry import Exceptions
    from fray.rpc._transport.wire import Buffer

    T = TypeVar("T", default=Any)  # the class of an actor
    P = ParamSpec("P", default=...)  # the parameters of a method
    R = TypeVar("R", default=Any)  # its result
else:  # defaults of type variables are for type checkers, before Python 3.13
    from typing import ParamSpec, TypeVar

    T, P, R = TypeVar("T"), ParamSpec("P"), TypeVar("R")

Q = ParamSpec("Q")
S = TypeVar("S")
_UNSET: Any = object()
_UNBOUNDED = 1 << 62  # bytes; what this process has already


class ActorMethod(Generic[P, R]):
    """One method of an actor. Calling it waits for the result."""

    __slots__ = ("_name", "_options", "_route")

    def __init__(self, route: Route, name: str, options: RpcOptions) -> None:
        """Use a handle."""
        self._route, self._name, self._options = route, name, options

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the method and return what it returned.

        Raises:
            ActorError: the call failed; the subclass is the kind of failure.
        """
        future = self._future(args, kwargs)
        if not future.done():
            self._route.submit(future, False)
        result: R = future.wait_out()
        return result

    def remote(self, *args: P.args, **kwargs: P.kwargs) -> ActorFuture[R]:
        """Call the method and return at once.

        Where more than 10,000 calls, or 256 MiB of their arguments, wait for the actor to be found, this one
        waits until there is room, or the call is over.

        Futures among the arguments stand for their results: the call is sent when they have ended, and before
        all later ones to the actor. If one fails, so does the call, with the same error; it does not run.

        Arrays and `bytearray`s of 8 KiB and more are sent from where they are, again too if the connection
        breaks: do not write to them before the call has ended. What is smaller is copied at once.

        Raises:
            EncodingError: no codec carries an argument. All else that goes wrong is in the future.
        """
        future = self._future(args, kwargs)
        if future.deadline is not None:
            _background.deadlines().add(future.deadline, future)
        if not future.done():
            self._route.submit(future, True)
        return future

    def options(
        self,
        *,
        timeout: float | None = _UNSET,
        retries: int | None = _UNSET,
        retry_exceptions: Exceptions | None = _UNSET,
        idempotent: bool = _UNSET,
        resolve_timeout: float = _UNSET,
        stream_window: int = _UNSET,
    ) -> ActorMethod[P, R]:
        """Return the method with other options for its calls, see RpcOptions."""
        changes = _changes(
            timeout=timeout,
            retries=retries,
            retry_exceptions=retry_exceptions,
            idempotent=idempotent,
            resolve_timeout=resolve_timeout,
            stream_window=stream_window,
        )
        return ActorMethod(self._route, self._name, replace(self._options, **changes))

    def _future(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ActorFuture[Any]:
        route, options = self._route, self._options
        awaited = futures_among(args, kwargs)
        written = _Written(options.codec, b"", []) if awaited else self._encoded(args, kwargs)
        call = Call(actor=route.name, method=self._name, codec=written.codec, args=written.data)  # type: ignore[arg-type]
        if trace := _trace.current():
            call.trace = trace
        if options.stream_window:
            call.stream.window_items, call.stream.or_one = options.stream_window, True
        future: ActorFuture[Any] = ActorFuture(route, call, written.buffers, options)
        future.plain = written.plain
        future.deadline = options.deadline()
        if awaited:
            self._resolve(future, awaited, args, kwargs)
        return future

    def _resolve(
        self,
        future: ActorFuture[Any],
        awaited: Sequence[ActorFuture[Any]],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Have futures among the arguments take their results' places, now or when they have ended."""
        if not all(each.done() for each in awaited):
            args, kwargs = self._copied(args, kwargs)

        def encode() -> None:
            written = self._encoded(*resolved(args, kwargs))
            future.call.codec, future.call.args = written.codec, written.data  # type: ignore[assignment]
            future.buffers, future.plain = written.buffers, written.plain

        if not all(each.done() for each in awaited):
            future.hold(awaited, encode)
            return
        try:
            encode()
        except EncodingError:
            raise
        except ActorError as err:
            future.fail(err)

    def _copied(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Return the arguments as they are now; futures, and large arrays and bytes, are the same objects."""
        codec, data, buffers, _ = self._encoded(*without_futures(args, kwargs))
        copies = decode_args(
            codec, data, buffers, on_actor=self._route.on_actor, allow_pickle=True, memory=_UNBOUNDED
        )
        return with_futures(copies, args, kwargs)

    def _encoded(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Written:
        number = self._options.codec
        pickles = number == Codec.MSGPACK and self._route.pickles
        try:
            if pickles is False:
                return _Written(number, *encode_args(number, args, kwargs))
            codec, data, buffers = encode_call(args, kwargs)
            unknown = pickles is None and codec == Codec.PICKLE
            return _Written(codec, data, buffers, _plain(args, kwargs) if unknown else None)
        except CodecError as err:
            raise EncodingError(
                err.problem, actor=self._route.name, method=self._name, argument=err.path
            ) from err

    def __repr__(self) -> str:
        return f"<method {self._name} of actor {self._route.name}>"


class ActorHandle(Generic[T]):
    """An actor, wherever it is. Its attributes are the methods that can be called.

        n = handle.increment(2)                # waits
        future = handle.increment.remote(2)    # does not
        n = await handle.increment.remote(2)   # in asyncio
        n = handle[Counter.increment](2)       # checked by every type checker

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
        retries: int | None = _UNSET,
        retry_exceptions: Exceptions | None = _UNSET,
        idempotent: bool = _UNSET,
        resolve_timeout: float = _UNSET,
        stream_window: int = _UNSET,
    ) -> ActorHandle[T]:
        """Return a handle of the same actor with other options for its calls, see RpcOptions."""
        changes = _changes(
            timeout=timeout,
            retries=retries,
            retry_exceptions=retry_exceptions,
            idempotent=idempotent,
            resolve_timeout=resolve_timeout,
            stream_window=stream_window,
        )
        return self.with_options(replace(self._options, **changes))

    def with_options(self, options: RpcOptions) -> ActorHandle[T]:
        """Return a handle of the same actor whose calls have these options."""
        return ActorHandle(self._route, options)

    def __getattr__(self, name: str) -> ActorMethod:
        """Return a method."""
        if name.startswith("_"):
            raise AttributeError(f"underscore names such as {name!r} are not callable")
        method = ActorMethod(self._route, name, self._options)
        self.__dict__[name] = method  # so that the next time is quicker
        return method

    @overload
    def __getitem__(
        self, method: Callable[Concatenate[T, Q], Coroutine[Any, Any, S]]
    ) -> ActorMethod[Q, S]: ...
    @overload
    def __getitem__(self, method: Callable[Concatenate[T, Q], S]) -> ActorMethod[Q, S]: ...
    @overload
    def __getitem__(self, method: str) -> ActorMethod: ...
    def __getitem__(self, method: Any) -> ActorMethod[Any, Any]:
        """Return a method, given by its name or as the function of the actor's class.

        The name may be that of an attribute of handles. The function has its parameters and result for type
        checkers, also for those without the plugin `fray.mypy_plugin`.
        """
        name = method if isinstance(method, str) else getattr(method, "__name__", None)
        if not isinstance(name, str):
            raise TypeError(f"{method!r} is no method; give its name, or the function of the actor's class")
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


class _Written(NamedTuple):
    """The arguments of a call as bytes."""

    codec: int
    data: bytes
    buffers: list[Buffer]
    plain: Plain | None = None
    """By msgpack, while it is not known whether the server takes pickle."""


def _plain(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Plain:
    """Return arguments by msgpack, for a server that takes no pickle, or why that does not carry them."""
    try:
        return encode_args(Codec.MSGPACK, args, kwargs)
    except CodecError as err:
        return err


def _changes(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not _UNSET}
