"""A call that goes on: what was asked for, how far it is on its way, and how it ends.

Where it is sent, and again after a loss, is left to its route and its channel, of which only the protocols
are known here. What its caller sees of it is left to `future`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from fray._pb import actor_pb2
from fray.rpc._calling import selfcall as _selfcall
from fray.rpc._calling.inbox import Inbox
from fray.rpc._calling.standard_future import StandardFuture
from fray.rpc._transport.retry import matches
from fray.rpc.codec import CodecError
from fray.rpc.errors import (
    ActorError,
    Code,
    DeadlineError,
    EncodingError,
    MalformedError,
    MaybeExecutedError,
    of_wire,
)
from fray.rpc.options import MAX_BREAKS

if TYPE_CHECKING:
    from fray.rpc._calling.outcome import Answer, Sent
    from fray.rpc._transport.call_chain import ChainedCall
    from fray.rpc._transport.settings import Settings
    from fray.rpc._transport.wire import Buffer
    from fray.rpc.codec import ActorRef
    from fray.rpc.options import RpcOptions

T = TypeVar("T")
Plain: TypeAlias = "tuple[bytes, Sequence[Buffer]] | CodecError"
"""Arguments by msgpack with their buffers, or why that does not carry them."""


class HandleMaker(Protocol):
    """Makes handles of references to actors."""

    def __call__(self, reference: ActorRef) -> Any:
        """Return the handle of a reference in a message."""
        ...

    @property
    def anywhere(self) -> Callable[..., Any]:
        """The function that makes a handle in another process, of its reference and its options."""
        ...


class CallRoute(Protocol):
    """The route to an actor, as its calls use it."""

    settings: Settings
    on_actor: HandleMaker
    idempotent: frozenset[str]
    retries: Mapping[str, int]
    incarnation: str

    @property
    def name(self) -> str:
        """The name of the actor."""
        ...

    @property
    def returned(self) -> Sized:
        """Calls that are to be sent before all later ones."""
        ...

    def submit(self, future: OngoingCall[Any], later: bool) -> None:
        """Send a call, or queue it."""
        ...

    def learned(self, future: OngoingCall[Any], incarnation: str) -> None:
        """Note the incarnation that answered."""
        ...

    def rejected(self, future: OngoingCall[Any], error: ActorError) -> None:
        """Take back a call that its server did not carry out, or end it."""
        ...

    def run_again(self, future: OngoingCall[Any], error: ActorError) -> None:
        """Take back a call whose method raised and is to run again."""
        ...

    def deliver(self) -> None:
        """Send what can be sent by now."""
        ...

    def lost(self, future: OngoingCall[Any], lives: bool = False) -> None:
        """Take back a call whose server is lost, or end it."""
        ...

    def left(self, address: str) -> bool:
        """Return whether the actor is known to have left an address."""
        ...


class CallChannel(Protocol):
    """What a call was sent on, as it is used by the call."""

    settings: Settings

    @property
    def peer(self) -> str:
        """The process that answered last, as Handshake.peer."""
        ...

    def flush(self) -> None:
        """Write what was left for later."""
        ...

    def attend(self, future: OngoingCall[Any], seconds: float) -> None:
        """Receive on this thread until the call is answered, for at most so long."""
        ...

    def cancel(self, future: OngoingCall[Any]) -> bool:
        """Ask the server to cancel the call; return False if it certainly does not have it."""
        ...

    def forget(self, seq: int) -> None:
        """Note that a call was answered."""
        ...

    def acknowledge(self, future: OngoingCall[Any], taken: int) -> None:
        """Report how many items of a call's stream were taken."""
        ...

    def lost(self) -> None:
        """Restore a broken connection."""
        ...


class OngoingCall(StandardFuture[T]):
    """One call, from when it is made until it has ended."""

    __slots__ = (
        "_answer",
        "_error",
        "_value",
        "arrived",
        "attempts",
        "awaited",
        "breaks",
        "buffers",
        "call",
        "cancelled_by",
        "channel",
        "deadline",
        "encode",
        "inbox",
        "later",
        "lost",
        "may_have_run",
        "number",
        "options",
        "plain",
        "retried",
        "route",
        "sent",
        "since",
    )

    def __init__(
        self,
        route: CallRoute,
        call: actor_pb2.Call,
        buffers: Sequence[Buffer],
        options: RpcOptions,
    ) -> None:
        """Use a handle."""
        super().__init__()
        self._answer: Answer | None = None
        self._error: ActorError | None = None
        self._value: list[T] | None = None
        self.route: CallRoute = route
        self.call, self.buffers, self.options = call, buffers, options
        self.awaited: Sequence[OngoingCall[Any]] = ()  # among its arguments
        self.encode: Callable[[], None] | None = None  # its arguments then; None: that is done
        self.retried = 0  # of the retries that it has
        self.number = 0  # among the calls of the route
        self.attempts = 0
        self.breaks = 0  # that it may be the reason of
        self.deadline: float | None = None
        self.channel: CallChannel | None = None
        self.sent: Sent | None = None
        self.lost = False  # with the connection that it was sent on
        self.later = False  # it may wait to be written
        self.since = 0.0  # from when on it waits for a server
        self.cancelled_by = False
        self.may_have_run = False  # on a server that is lost
        self.arrived = False  # perhaps, over an earlier connection to the same server
        self.plain: Plain | None = None  # its arguments by msgpack, while pickle may be refused
        self.inbox: Inbox | None = None  # of a call that is answered by a stream, once that has begun

    @property
    def unsent(self) -> bool:
        """Whether no server can have it: certain once the connection is lost."""
        return not self.arrived and (self.sent is None or not self.sent.may_have_arrived)

    @property
    def failed(self) -> bool:
        return self._error is not None

    def hold(self, awaited: Sequence[OngoingCall[Any]], encode: Callable[[], None]) -> None:
        """Let the call be sent, by its route, once futures among its arguments have ended.

        `encode` writes the arguments into the call then. If it raises an ActorError, so ends the call.
        """
        self.awaited, self.encode = awaited, encode

        def ended() -> None:
            if not self.held:
                self.route.deliver()

        self.on_done(ended)  # given up, it must hold up no later calls
        for future in awaited:
            future.on_done(ended)

    @property
    def held(self) -> bool:
        """Whether it cannot be sent before others have ended."""
        return self.unwritten and not all(future.done() for future in self.awaited)

    @property
    def unwritten(self) -> bool:
        """Whether its arguments are still to be encoded."""
        return self.encode is not None and not self._finished

    def write_arguments(self) -> None:
        """Encode the arguments of a call that is held no more."""
        if self.encode is None:
            return
        try:
            self.encode()
        except ActorError as err:
            self.fail(err)
        except Exception as err:  # of a value's own code
            self.fail(EncodingError(f"the arguments cannot be encoded: {type(err).__name__}: {err}"))
        self.encode, self.awaited = None, ()

    def suspects(self) -> Iterator[tuple[OngoingCall[Any], ChainedCall]]:
        """Yield what it waits for that may wait for the running method, with the call of that."""
        if not self._finished:
            suspect = _selfcall.suspect(self.call.method)
            if suspect is not None:
                yield self, suspect
            for future in self.awaited:
                yield from future.suspects()

    def is_stuck(self, call: ChainedCall) -> bool:
        """End the call if it cannot begin before the running one ends, which waits for it; return whether."""
        channel = self.channel
        if channel is None:
            return False
        stuck = _selfcall.held_up(call, channel.peer, channel.settings.peer, self.call.seq)
        if stuck is None:
            return False
        problem = _selfcall.problem(call)
        self.give_up(lambda _: problem)
        stuck.drop(problem)  # before the one that runs can return and let it begin
        return True

    def _flush(self) -> None:
        channel = self.channel
        if channel is not None:
            channel.flush()

    def _finish(self, answer: Answer | None, error: ActorError | None) -> None:
        if self._claim.acquire(False):
            self._settle(answer, error)

    def give_up(self, error: Callable[[bool], ActorError]) -> None:
        """End the call, though another thread may be sending it; `error` gets whether it may have run."""
        if not self._claim.acquire(False):
            return
        # The sender sets `sent` and then checks the claim, so one of the two notices the other.
        ran = self.sent is not None or self.may_have_run
        self._settle(None, error(ran).at(self.route.name, self.call.method))
        channel = self.channel
        if channel is not None:
            channel.cancel(self)

    @property
    def size(self) -> int:
        """About how many bytes its arguments are."""
        return len(self.call.args) + sum(len(b) for b in self.buffers)

    def _settle(self, answer: Answer | None, error: ActorError | None) -> None:
        self._answer, self._error = answer, error
        self._end()
        if self.inbox is not None:
            self.inbox.wake()

    def fail(self, error: ActorError) -> None:
        """End the call with an error. One that has ended stays as it is."""
        error.ran = error.ran or self.may_have_run  # before, where the error is of a retry
        self._finish(None, error.at(self.route.name, self.call.method))

    def expire(self) -> None:
        """End the call, as its time is over."""

        def late(ran: bool) -> ActorError:
            return DeadlineError("the deadline passed", ran=ran)

        if not self._finished:
            self.give_up(late)

    def stamp(self) -> bool:
        """Write what is left of its time into the call. If that is nothing, end the call and return False."""
        left = cast("float", self.deadline) - monotonic()
        if left <= 0:
            self.expire()
            return False
        self.call.timeout_ns = int(left * 1e9) + 1
        return True

    def choose_codec(self, pickles: bool) -> bool:
        """Take the arguments as they are for a server; `pickles`: pickle is the fallback there.

        False: they cannot be sent there, which ends the call.
        """
        plain = self.plain
        if pickles or plain is None:
            return True
        self.plain = None
        if isinstance(plain, CodecError):
            self.fail(EncodingError(plain.problem, argument=plain.path))
            return False
        self.call.codec, self.call.args, self.buffers = actor_pb2.CODEC_MSGPACK, *plain
        return True

    def answered(self, answer: Answer) -> None:
        """Take what became of the call, on the thread of the connection's reader: without waiting."""
        if answer.items is not None:
            self._streamed(answer.items, answer.buffers, answer.pickles)
            return
        reply = answer.reply
        channel = cast("CallChannel", self.channel)
        if reply is None:
            self.lost = True
            channel.lost()
            return
        channel.forget(self.call.seq)
        if reply.HasField("error"):
            error = of_wire(reply.error, pickles=answer.pickles)
            if error.code is Code.APPLICATION and self._may_run_again(reply.error):
                self.route.run_again(self, error)
            else:
                self.route.rejected(self, error)
        elif (reply.streamed or self.inbox is not None) and not self._complete(reply):
            self.fail(
                MalformedError(f"the stream ended after {reply.items} items, others have come", ran=True)
            )
        else:
            if not self.route.incarnation:
                self.route.learned(self, reply.incarnation)
            self._finish(answer, None)

    def may_repeat(self) -> bool:
        """Whether a call that may have run is to be sent again. It counts as such."""
        if self._finished or self.cancelled_by or self.breaks >= MAX_BREAKS:
            return False
        if self._taken:
            return False
        self.breaks += 1
        if self.options.idempotent or self.call.method in self.route.idempotent:
            return True
        return self._retry(self.route.retries.get(self.call.method, 0))

    def _may_run_again(self, error: actor_pb2.Error) -> bool:
        """Whether a call whose method raised is to be sent again. It counts as such."""
        if self._finished or self.cancelled_by or self._taken:
            return False
        names, declared = self.options.retry_exceptions, error.retry
        if not (declared.matches if names is None else matches(cast("frozenset[str]", names), error)):
            return False
        return self._retry(declared.retries)

    def _retry(self, declared: int) -> bool:
        """Use up one of the retries, of which the method declares so many; return whether there was one."""
        if self.retried >= (declared if self.options.retries is None else self.options.retries):
            return False
        self.retried += 1
        return True

    @property
    def _taken(self) -> bool:
        """Whether items of its stream have come: what its loop has had is not taken back."""
        return self.inbox is not None and self.inbox.received > 0

    def _streamed(self, items: actor_pb2.Items, buffers: Sequence[memoryview], pickles: bool) -> None:
        """Take items of a stream, on the thread of the connection's reader. Raises MalformedFrameError."""
        inbox = self.inbox
        if inbox is None:
            inbox = Inbox(self.options.stream_window)
        if not self._finished:
            inbox.add(items, buffers, pickles)
        if self.inbox is None:
            self.inbox = inbox
            self._begin()

    def _complete(self, reply: actor_pb2.Reply) -> bool:
        """Return whether a reply ends the stream that has come."""
        return reply.streamed and self.inbox is not None and reply.items == self.inbox.received

    def fail_maybe(self) -> None:
        """End a call that may have run, and whose result is lost."""
        self.fail(
            MaybeExecutedError("the connection broke after the call was sent: it may have run", ran=True)
        )


def end_stuck(suspects: Sequence[tuple[OngoingCall[Any], ChainedCall]]) -> bool:
    """End those of the calls that the running one holds up; return whether that is all of them."""
    stuck = [call.is_stuck(running) for call, running in suspects]
    return all(stuck)
