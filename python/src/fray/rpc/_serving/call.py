"""One run of a method on the server's side, from the call's arrival until it is answered.

Where calls wait is left to `_serving.mailbox`, and which of them run to `_serving.core`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from enum import IntEnum
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from fray._pb import actor_pb2
from fray.rpc._serving.ledger import Caller, Entry
from fray.rpc._serving.ownership import stable
from fray.rpc._serving.reply import Answerer, Reply, error_reply, payload_size
from fray.rpc._serving.stream import ServerStream, StoppedError, iterates, iterates_async
from fray.rpc._transport import trace as _trace
from fray.rpc._transport.call_chain import call_deadline, here, task_call
from fray.rpc._transport.failure import clip, raised
from fray.rpc._transport.raised import pack
from fray.rpc._transport.retry import base_names, matches
from fray.rpc._transport.transfer import PARTS_FROM, decoded_limit
from fray.rpc._transport.wire import item_too_large, payload_of
from fray.rpc.codec import (
    CodecError,
    CodecTooLargeError,
    decode_args,
    encode_reply,
    encode_result,
)
from fray.rpc.context import ActorContext
from fray.rpc.errors import (
    ActorError,
    BadArgumentsError,
    CancelledError,
    DeadlineError,
    EncodingError,
    InternalError,
    MaybeExecutedError,
    StoppingError,
    TooLargeError,
)

if TYPE_CHECKING:
    import asyncio

    from fray.rpc._serving.methods import Method
    from fray.rpc._serving.stream import Sink
    from fray.rpc._transport.memory import Reservation
    from fray.rpc.codec import ActorRef
    from fray.rpc.context import Surroundings

_log = logging.getLogger("fray.rpc")
_LONGEST: Final = 100 * 365 * 86400.0  # seconds


class ArgumentsSource(Protocol):
    """What brings arguments in parts."""

    def dropped(self, call: ServerCall, /) -> None:
        """Receive no arguments of a call that was answered before they had come."""
        ...


class CallQueue(Protocol):
    """Where calls wait for their turn."""

    def put(self, call: Any, /) -> bool:
        """Let a call wait; return whether its thread receives on its connection afterwards."""
        ...


class SharedConnection(Protocol):
    """A connection on which the thread that ran its last call may receive the next one."""

    def receive_one(self, wake: int) -> bool:
        """Receive one frame and begin what it asks for; False: it is no call of the same queue, or none came.

        It ends early when the descriptor `wake` can be read.
        """
        ...

    def give_back(self, shared: bool) -> None:
        """Have the connection's own thread receive again; `shared`: the last call was for another actor."""
        ...


class CalledActor(Protocol):
    """An actor, as its calls use it."""

    name: str
    tag: str
    incarnation: str
    value: Any
    gone: bool
    surroundings: Surroundings

    def slot(self, method: str) -> object:
        """Return what calls of a method take turns for; None: they take none."""
        ...

    def on_reference(self, reference: ActorRef, /) -> Any:
        """Make a handle of a reference among the arguments."""
        ...

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any], /) -> Any:
        """Await a coroutine on the event loop, and wait for it."""
        ...

    def on_loop(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function on the event loop."""
        ...

    def waiting(self, server: str, caller: str, seq: int, /) -> ServerCall | None:
        """Return a call that waits at this server, if it is the one that is meant."""
        ...

    def opened(self, call: ServerCall, stream: ServerStream) -> Answerer | None:
        """Note the stream of a call that runs; return what it goes to."""
        ...

    def answered(self, call: ServerCall, reply: Reply, later: bool) -> None:
        """Take a reply to its caller."""
        ...


STREAMS: Final = "it answers by a stream: iterate over it, by actorrpc.Stream in Go, by InvokeStream in gRPC"
"""Why a caller that takes one result does not get it."""
_FRAME: Final = 256  # bytes of a frame beside an item


class _Phase(IntEnum):
    WAITS = 0
    RUNS = 1
    OVER = 2


class ServerCall(Entry):
    """A call that has an actor and a method."""

    __slots__ = (
        "__weakref__",
        "_lock",
        "_phase",
        "absence",
        "actor",
        "arrived",
        "buffers",
        "caller",
        "codec",
        "connection",
        "deadline",
        "item_limit",
        "memory",
        "message",
        "method",
        "pickles",
        "queue",
        "returns_pickles",
        "room",
        "session",
        "size",
        "takes_stream",
        "task",
        "trace",
        "why",
    )

    def __init__(
        self,
        message: actor_pb2.Call,
        buffers: Sequence[memoryview],
        caller: Caller[ServerCall] | None,
        to: Answerer,
    ) -> None:
        super().__init__(message.seq, message.attempt, to)
        self.message: actor_pb2.Call | None = message
        self.buffers = buffers
        self.caller = caller
        self.codec = message.codec
        self.actor: CalledActor
        self.method: Method
        self.arrived = time.monotonic()
        timeout = message.timeout_ns
        self.deadline = self.arrived + min(timeout / 1e9, _LONGEST) if timeout else None
        self.connection: SharedConnection | None = None  # where the thread that runs it may receive
        self.trace = ""  # W3C traceparent
        self.size = 0  # of its arguments, where they are large
        self.item_limit = 0  # bytes of an item of a stream, 0: none
        self.memory = 0  # bytes that they may take when they are decoded, 0: the default
        self.queue: CallQueue | None = None  # where it is to wait once its arguments are here
        self.room: Reservation | None = None  # for arguments that come in parts
        self.session: ArgumentsSource | None = None  # that brings them
        self.complete = not message.transfer_bytes
        self.pickles = False  # its arguments may be pickled
        self.returns_pickles = False  # pickle is the fallback for its result, or its exception
        self.task: asyncio.Task[None] | None = None  # of an asynchronous method
        self.why: ActorError | None = None  # it is cancelled
        self.takes_stream = to.takes_streams or message.HasField("stream")
        self.absence: Absence | None = None  # of the caller of its stream
        self._lock = threading.Lock()
        self._phase = _Phase.WAITS

    # In a thread.

    def run(self) -> Reply | None:
        """Call a method that is no coroutine; None: the call is over already."""
        try:
            return self._run()
        except Exception as err:
            return self._broke(err)

    def _run(self) -> Reply | None:
        if not self._begins():
            return None
        try:
            args, kwargs = self._arguments()
        except ActorError as err:
            return self._over(self._failed(err))
        deadline = self.deadline
        token = None if deadline is None else call_deadline.set(deadline)
        leave = _trace.enter(self.trace) if self.trace else None
        here.call = self
        try:
            result = [getattr(self.actor.value, self.method.name)(*args, **kwargs)]
            if type(result[0]) is CoroutineType:
                result[0] = self.actor.run_coroutine(result[0])
            if iterates(result[0]):
                return self._over(self._produced(result.pop()))
            if iterates_async(result[0]):
                return self._over(self.actor.run_coroutine(self._produced_async(result.pop())))
        except BaseException as err:
            return self._over(self._raised(err))
        finally:
            here.call = None
            if token is not None:
                call_deadline.reset(token)
            if leave is not None:
                leave()
        return self._over(self._returned(result))

    # On the event loop.

    async def run_async(self) -> None:
        """Await a method that is a coroutine, and answer."""
        try:
            reply = await self._awaited()
        except Exception as err:
            reply = self._broke(err)
        finally:
            self.task = None
        if reply is not None and payload_size(reply) > PARTS_FROM:  # answering may have to wait for others
            threading.Thread(target=self.answer, args=(reply, False), name="fray-actor-answer").start()
        else:
            self.answer(reply, later=False)

    async def _awaited(self) -> Reply | None:
        if not self._begins():
            return None
        try:
            args, kwargs = self._arguments()
        except ActorError as err:
            return self._over(self._failed(err))
        call_deadline.set(self.deadline)
        task_call.set(self)
        if self.trace:
            _trace.enter(self.trace)
        import asyncio  # see _serving.event_loop

        loop, timer = asyncio.get_running_loop(), None
        if self.deadline is not None:
            late = DeadlineError("the deadline passed while the method ran", ran=True)
            timer = loop.call_later(self.deadline - time.monotonic(), self._cancel_task, late)
        try:
            result = [getattr(self.actor.value, self.method.name)(*args, **kwargs)]
            if not self.method.streams:
                result[0] = await result[0]
            if iterates_async(result[0]) or iterates(result[0]):
                return self._over(await self._produced_async(result.pop()))
        except asyncio.CancelledError as err:
            return self._over(self._failed(self.why) if self.why else self._raised(err))
        except BaseException as err:
            return self._over(self._raised(err))
        finally:
            if timer is not None:
                timer.cancel()
        return self._over(self._returned(result))

    def _cancel_task(self, why: ActorError) -> None:
        task = self.task
        if task is not None:
            self.why = self.why or why
            task.cancel()

    # Streams.

    def _produced(self, result: Iterator[Any]) -> Reply:
        """Stream the items of an iterator, and return the reply that ends that."""
        try:
            stream = self._open()
            for item in result:
                stream.put(*self._item(item), self.deadline)
        except StoppedError as err:
            return self._failed(err.why)
        except BaseException as err:
            return self._failed(self._error_of(err))
        finally:
            _close(result)
        return self._ended()

    async def _produced_async(self, result: Any) -> Reply:
        """Do the same on the event loop, also for an asynchronous iterator."""
        import asyncio

        try:
            stream = self._open()
            if iterates(result):
                for item in result:
                    await stream.put_async(*self._item(item))
            else:
                async for item in result:
                    await stream.put_async(*self._item(item))
        except StoppedError as err:
            return self._failed(err.why)
        except asyncio.CancelledError:
            raise
        except BaseException as err:
            return self._failed(self._error_of(err))
        finally:
            if iterates(result):
                _close(result)
            elif hasattr(result, "aclose"):
                with suppress(Exception):  # what its end raises is of no call
                    await result.aclose()
        return self._ended()

    def _open(self) -> ServerStream:
        """Begin the stream. Raises StoppedError."""
        message = self.message
        if not self.takes_stream:
            raise StoppedError(EncodingError(f"the result is an iterator; {STREAMS}", ran=True))
        if message is None or not self.runs:  # another thread answered just now
            raise StoppedError(StoppingError("the server is shutting down", ran=True))
        message.codec = self._item_codec()  # type: ignore[assignment]
        stream = ServerStream(message, self._stop_task)
        to = self.actor.opened(self, stream)
        if to is not None:
            stream.attach(cast("Sink", to), message.stream)
        return stream

    def _item_codec(self) -> int:
        """Return by which codec the items are written: all of a stream by one."""
        return (
            actor_pb2.CODEC_PICKLE
            if self.returns_pickles and self.codec != actor_pb2.CODEC_JSON
            else self.codec
        )

    def _item(self, value: Any) -> tuple[bytes, Sequence[bytes]]:
        """Encode one item. Raises StoppedError."""
        try:
            data, buffers = encode_result(self._item_codec(), value)
        except CodecError as err:
            raise StoppedError(EncodingError(err.problem, argument=err.path, ran=True)) from None
        limit = self.item_limit
        size = len(data) + _FRAME
        own: Sequence[bytes] = ()
        if buffers:
            own = [b if type(b) is bytes else bytes(b) for b in buffers]
            size += sum(map(len, own))
        if limit and size > limit:
            raise StoppedError(TooLargeError(item_too_large(size, limit), ran=True))
        return data, own

    def _ended(self) -> Reply:
        return actor_pb2.Reply(seq=self.seq, codec=self.codec, incarnation=self.actor.incarnation), ()

    def _stop_task(self, why: ActorError) -> None:
        if self.task is not None:
            self.actor.on_loop(self._cancel_task, why)

    # From elsewhere.

    @property
    def held_for(self) -> str:
        """The name of the actor."""
        return self.actor.name

    @property
    def waits(self) -> bool:
        """Whether the method has not begun."""
        return self._phase is _Phase.WAITS

    @property
    def runs(self) -> bool:
        """Whether the method has begun and is not answered."""
        return self._phase is _Phase.RUNS

    @property
    def tag(self) -> str:
        """The first name of the object."""
        return self.actor.tag

    @property
    def method_name(self) -> str:
        """The name of the method."""
        return self.method.name

    def slot(self, method: str) -> object:
        """Return what calls of a method of the actor take turns for; None: they take none."""
        return self.actor.slot(method)

    def waiting(self, server: str, caller: str, seq: int) -> ServerCall | None:
        """Return a call that waits at this server, if it is the one that is meant."""
        return self.actor.waiting(server, caller, seq)

    def drop(self, err: ActorError) -> bool:
        """Answer with an error if the call waits still; return whether it did."""
        if not self._advance(_Phase.WAITS, _Phase.OVER):
            return False
        self.reject(err)
        return True

    def withdraw(self) -> bool:
        """Have the call never run if it waits still; return whether it did. `reject` is to answer it.

        One of its number that comes from now on is new.
        """
        if not self._advance(_Phase.WAITS, _Phase.OVER):
            return False
        self.rejected = True
        return True

    def reject(self, err: ActorError) -> None:
        """Answer a call that is over and did not run."""
        self.answer(self._failed(err), later=False)

    def cancel(self) -> None:
        """Answer if it waits; interrupt it if it is a coroutine."""
        if self.drop(CancelledError("the call was cancelled before it began")):
            return
        why = CancelledError("the call was cancelled while the method ran", ran=True)
        if self.method.asynchronous:
            self.actor.on_loop(self._cancel_task, why)
        if self.stream is not None:
            self.stream.stop(why)

    def cancel_if_routed(self) -> None:
        """Cancel, unless the call was rejected already."""
        if hasattr(self, "actor"):
            self.cancel()

    def abandon(self, why: ActorError | None = None) -> None:
        """Answer though it runs; None: the server ends."""
        if self.drop(StoppingError("the server is shutting down")):
            return
        if self._advance(_Phase.RUNS, _Phase.OVER):
            why = why or StoppingError("the server is shutting down", ran=True)
            self.answer(self._failed(why), later=False)

    def answer(self, reply: Reply | None, later: bool) -> None:
        """Hand out the reply; None: another thread did."""
        if reply is not None:
            self.over = True
            self.actor.answered(self, reply, later)

    def _begins(self) -> bool:
        if self.deadline is not None and time.monotonic() >= self.deadline:
            self.drop(DeadlineError("the deadline passed before the call began"))
            return False
        if self.actor.gone:
            self.drop(StoppingError("the actor was unregistered"))
            return False
        return self._advance(_Phase.WAITS, _Phase.RUNS)

    def _advance(self, before: _Phase, after: _Phase) -> bool:
        with self._lock:
            if self._phase is not before:
                return False
            self._phase = after
            return True

    def _over(self, reply: Reply) -> Reply | None:
        return reply if self._advance(_Phase.RUNS, _Phase.OVER) else None

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        message = self.message
        if message is None:  # another thread answered just now
            raise StoppingError("the server is shutting down", ran=True)
        payload = payload_of(self.buffers, message.args)
        size = len(payload) + sum(b.nbytes for b in self.buffers)
        try:
            args, kwargs = decode_args(
                self.codec,
                payload,
                self.buffers,
                on_actor=self.actor.on_reference,
                allow_pickle=self.pickles,
                memory=decoded_limit(self.memory, size),
            )
        except CodecTooLargeError as err:
            raise TooLargeError(err.problem) from None
        except CodecError as err:
            raise BadArgumentsError(err.problem, argument=err.path) from None
        except Exception as err:
            raise BadArgumentsError(f"the arguments cannot be decoded: {err}") from err
        self.buffers = ()
        self.trace = message.trace
        self.method.check(args, kwargs)
        if self.method.takes_context:
            args.insert(0, self._context(message))
        return args, kwargs

    def _broke(self, err: Exception) -> Reply | None:
        """Answer though the server has a fault."""
        _log.error(
            "a call of %s.%s could not be carried out", self.actor.name, self.method.name, exc_info=err
        )
        return self._over(self._failed(InternalError("the server failed; its log has the reason", ran=True)))

    def _context(self, message: actor_pb2.Call) -> ActorContext:
        return ActorContext.of_call(
            self.actor.surroundings,
            actor=self.actor.name,
            incarnation=self.actor.incarnation,
            method=self.method.name,
            caller=self.caller.peer if self.caller else message.caller,
            trace=message.trace,
            deadline=self.deadline,
        )

    def _returned(self, result: list[Any]) -> Reply:
        """Return the reply of a result, which is the only element of a list that has it alone."""
        try:
            codec, data, buffers = encode_reply(self.codec, result[0], self.returns_pickles)
        except CodecError as err:
            return self._failed(EncodingError(err.problem, argument=err.path, ran=True))
        except Exception as err:
            problem = InternalError(f"the result cannot be encoded: {type(err).__name__}: {err}", ran=True)
            return self._failed(problem)
        reply = actor_pb2.Reply(
            seq=self.seq,
            codec=codec,  # type: ignore[arg-type]
            result=data,
            incarnation=self.actor.incarnation,
        )
        return reply, stable(result, buffers) if buffers else ()

    def _error_of(self, err: BaseException) -> ActorError:
        error = raised(err, 1)
        error.packed = pack(err, self.returns_pickles)
        return error

    def _raised(self, err: BaseException) -> Reply:
        """Return the reply of a method that raised, with what its caller needs to know to call it again."""
        reply = self._failed(self._error_of(err))
        wire, marks = reply[0].error, self.method.marks
        wire.bases.extend(map(clip, base_names(type(err))))
        if marks.retry:
            wire.retry.retries, wire.retry.matches = marks.retries, matches(marks.retry_exceptions, wire)
        return reply

    def _failed(self, err: ActorError) -> Reply:
        return error_reply(self.seq, self.actor.incarnation, err.at(self.actor.name, self.method.name))


def _close(result: Iterator[Any]) -> None:
    """Have a generator end."""
    close = getattr(result, "close", None)
    if close is not None:
        with suppress(Exception):  # what its end raises is of no call
            close()


class Absence:
    """Of the caller of a stream: its connection has ended, and it may come back by another."""

    def __init__(self, call: ServerCall, to: Answerer | None, message: str) -> None:
        self._call, self._to, self._message = call, to, message

    def done(self) -> bool:
        """Return whether the caller has come back, or the stream has ended."""
        return self._call.to is not self._to or not self._call.runs

    def expire(self) -> None:
        """End the stream."""
        if self._call.stream is not None:
            self._call.stream.stop(MaybeExecutedError(self._message, ran=True))
