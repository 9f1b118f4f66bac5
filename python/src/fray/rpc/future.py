"""Futures: the result of a call that goes on, as its caller sees it.

Where the call is sent, and again after a loss, is left to its route and its channel, of which only the
protocols are known here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence, Sized
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from fray.cluster.context import scoped_guard
from fray.rpc import _background, _selfcall
from fray.rpc._promise import Promise
from fray.rpc._transfer import decoded_limit
from fray.rpc._wire import payload_of
from fray.rpc.codec import Codec, CodecError, CodecTooLargeError, decode_result
from fray.rpc.errors import (
    ActorError,
    CancelledError,
    DeadlineError,
    DeniedError,
    EncodingError,
    MaybeExecutedError,
    TooLargeError,
    cancelled,
    of_wire,
)
from fray.rpc.options import MAX_BREAKS

if TYPE_CHECKING:
    from fray._pb import actor_pb2
    from fray.rpc._call_chain import ChainedCall
    from fray.rpc._outcome import Answer, Sent
    from fray.rpc._settings import Settings
    from fray.rpc._wire import Buffer
    from fray.rpc.codec import ActorRef
    from fray.rpc.options import RpcOptions

T = TypeVar("T")

_WAKE = 0.5  # seconds; a thread that is being stopped notices only between two waits


class HandleMaker(Protocol):
    """Makes handles of references to actors."""

    def __call__(self, reference: ActorRef) -> Any:
        """Return the handle of a reference in a message."""
        ...

    @property
    def anywhere(self) -> Callable[..., Any]:
        """The function that makes a handle in another process, of its reference and its options."""
        ...


class FutureRoute(Protocol):
    """The route to an actor, as futures of its calls use it."""

    settings: Settings
    on_actor: HandleMaker
    idempotent: frozenset[str]
    incarnation: str

    @property
    def name(self) -> str:
        """The name of the actor."""
        ...

    @property
    def returned(self) -> Sized:
        """Calls that are to be sent before all later ones."""
        ...

    def submit(self, future: ActorFuture[Any], later: bool) -> None:
        """Send a call, or queue it."""
        ...

    def learned(self, future: ActorFuture[Any], incarnation: str) -> None:
        """Note the incarnation that answered."""
        ...

    def rejected(self, future: ActorFuture[Any], error: ActorError) -> None:
        """Take back a call that its server did not carry out, or end it."""
        ...

    def lost(self, future: ActorFuture[Any]) -> None:
        """Take back a call whose server is lost, or end it."""
        ...

    def left(self, address: str) -> bool:
        """Return whether the actor is known to have left an address."""
        ...


class FutureChannel(Protocol):
    """What a call was sent on, as its future uses it."""

    settings: Settings

    @property
    def peer(self) -> str:
        """The process that answered last, as Handshake.peer."""
        ...

    def flush(self) -> None:
        """Write what was left for later."""
        ...

    def attend(self, future: ActorFuture[Any], seconds: float) -> None:
        """Receive on this thread until the call is answered, for at most so long."""
        ...

    def cancel(self, future: ActorFuture[Any]) -> bool:
        """Ask the server to cancel the call; return False if it certainly does not have it."""
        ...

    def forget(self, seq: int) -> None:
        """Note that a call was answered."""
        ...

    def lost(self) -> None:
        """Restore a broken connection."""
        ...


class ActorFuture(Promise, Generic[T]):
    """The result of a call that goes on. It can be awaited in asyncio, too."""

    __slots__ = (
        "__weakref__",
        "_answer",
        "_error",
        "_value",
        "arrived",
        "attempts",
        "breaks",
        "buffers",
        "call",
        "cancelled_by",
        "channel",
        "deadline",
        "later",
        "lost",
        "may_have_run",
        "number",
        "options",
        "retries",
        "route",
        "sent",
        "since",
    )

    def __init__(
        self,
        route: FutureRoute,
        call: actor_pb2.Call,
        buffers: Sequence[Buffer],
        options: RpcOptions,
    ) -> None:
        """Use a handle."""
        super().__init__()
        self._answer: Answer | None = None
        self._error: ActorError | None = None
        self._value: list[T] | None = None
        self.route: FutureRoute = route
        self.call, self.buffers, self.options = call, buffers, options
        self.retries = options.retries
        self.number = 0  # among the calls of the route
        self.attempts = 0
        self.breaks = 0  # that it may be the reason of
        self.deadline: float | None = None
        self.channel: FutureChannel | None = None
        self.sent: Sent | None = None
        self.lost = False  # with the connection that it was sent on
        self.later = False  # it may wait to be written
        self.since = 0.0  # from when on it waits for a server
        self.cancelled_by = False
        self.may_have_run = False  # on a server that is lost
        self.arrived = False  # perhaps, over an earlier connection to the same server

    # For users

    def result(self, timeout: float | None = None) -> T:
        """Return what the method returned.

        Args:
            timeout: The longest wait in seconds; None: without end. The call goes on when it is over.

        Raises:
            TimeoutError: the wait was over.
            ActorError: the call failed; the subclass is the kind of failure.
        """
        if not self._finished:
            self._wait(timeout)
        if self._error is not None:
            raise self._error
        return self._decoded()

    def exception(self, timeout: float | None = None) -> ActorError | None:
        """Return the error of the call, None if it returned.

        Args:
            timeout: The longest wait in seconds; None: without end.

        Raises:
            TimeoutError: the wait was over before the call.
        """
        if not self._finished:
            self._wait(timeout)
        if self._error is None:
            try:
                self._decoded()
            except ActorError as err:
                return err
        return self._error

    def cancelled(self) -> bool:
        """Return whether it has ended by being cancelled."""
        return self._finished and isinstance(self._error, CancelledError)

    def cancel(self) -> bool:
        """Ask for the call not to begin, or to end if its language can; False if it has ended already.

        One that has not been sent ends at once. Else its server answers, with a result if that was too late.
        """
        if self._finished:
            return False
        self.cancelled_by = True
        channel = self.channel
        if channel is None or not channel.cancel(self):
            self._give_up(cancelled)
        return True

    def add_done_callback(self, callback: Callable[[ActorFuture[T]], object]) -> None:
        """Call `callback` with the future when it has ended; at once if it has.

        Callbacks run one after the other on a thread of their own. Exceptions are logged.
        """

        def queue() -> None:
            _background.callbacks().put(lambda: callback(self))

        self.on_done(queue)

    def __await__(self) -> Generator[Any, None, T]:
        """Wait in asyncio. Cancelling the task that waits cancels the call."""
        import asyncio

        if self._finished:
            return self.result()
        loop = asyncio.get_running_loop()
        changed: asyncio.Future[None] = loop.create_future()

        def wake() -> None:
            if not changed.done():
                changed.set_result(None)

        def finished() -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(wake)

        self.on_done(finished)
        if self.later:
            loop.call_soon(self._flush)  # once for all that are awaited in this turn
        suspect = _selfcall.suspect(self.call.method)
        if suspect is not None:
            _selfcall.check_later(loop, lambda: self._finished or self.is_stuck(suspect))
        try:
            yield from changed
        except asyncio.CancelledError:
            self.cancel()
            raise
        return self.result()

    def __repr__(self) -> str:
        state = "pending" if not self._finished else "failed" if self._error else "done"
        return f"<ActorFuture {self.route.name}.{self.call.method} {state}>"

    # For routes and channels

    def _wait(self, timeout: float | None) -> None:
        if self.later:
            self._flush()
        limit = None if timeout is None else monotonic() + timeout
        suspect = _selfcall.suspect(self.call.method)
        if limit is None and suspect is None and scoped_guard() is None:
            self._waiter.acquire()
            self._waiter.release()
            return
        wake = _WAKE if suspect is None else _selfcall.CHECK_INTERVAL
        while True:
            left = wake if limit is None else min(wake, max(0.0, limit - monotonic()))
            if self._ends_within(left):
                return
            if suspect is not None and self.is_stuck(suspect):
                return
            if limit is not None and monotonic() >= limit:
                raise TimeoutError(
                    f"{self.route.name}.{self.call.method} has not returned within {timeout} s"
                )

    def is_stuck(self, call: ChainedCall) -> bool:
        """End the call if it cannot begin before the running one ends, which waits for it; return whether."""
        channel = self.channel
        if channel is None:
            return False
        stuck = _selfcall.held_up(call, channel.peer, channel.settings.peer, self.call.seq)
        if stuck is None:
            return False
        problem = _selfcall.problem(call)
        self._give_up(lambda _: problem)
        stuck.drop(problem)  # before the one that runs can return and let it begin
        return True

    def wait_out(self) -> T:
        """Return the result of a call that only the caller has: there is no timer for its deadline."""
        try:
            channel = self.channel
            if channel is not None and scoped_guard() is None and _selfcall.suspect(self.call.method) is None:
                channel.attend(self, inf if self.deadline is None else self.deadline - monotonic())
            if not self._finished:
                self._wait(None if self.deadline is None else max(0.0, self.deadline - monotonic()))
        except TimeoutError:
            self.expire()
        except BaseException:  # KeyboardInterrupt, or a job that is stopped
            self.cancel()
            raise
        return self.result()

    def _flush(self) -> None:
        channel = self.channel
        if channel is not None:
            channel.flush()

    def _finish(self, answer: Answer | None, error: ActorError | None) -> None:
        if self._claim.acquire(False):
            self._settle(answer, error)

    def _give_up(self, error: Callable[[bool], ActorError]) -> None:
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

    def fail(self, error: ActorError) -> None:
        """End the call with an error. One that has ended stays as it is."""
        error.ran = error.ran or self.may_have_run  # before, where the error is of a retry
        self._finish(None, error.at(self.route.name, self.call.method))

    def expire(self) -> None:
        """End the call, as its time is over."""

        def late(ran: bool) -> ActorError:
            return DeadlineError("the deadline passed", ran=ran)

        if not self._finished:
            self._give_up(late)

    def stamp(self) -> bool:
        """Write what is left of its time into the call. If that is nothing, end the call and return False."""
        left = cast("float", self.deadline) - monotonic()
        if left <= 0:
            self.expire()
            return False
        self.call.timeout_ns = int(left * 1e9) + 1
        return True

    def answered(self, answer: Answer) -> None:
        """Take what became of the call, on the thread of the connection's reader: without waiting."""
        reply = answer.reply
        channel = cast("FutureChannel", self.channel)
        if reply is None:
            self.lost = True
            channel.lost()
            return
        channel.forget(self.call.seq)
        if reply.HasField("error"):
            self.route.rejected(self, of_wire(reply.error))
        else:
            if not self.route.incarnation:
                self.route.learned(self, reply.incarnation)
            self._finish(answer, None)

    def may_repeat(self) -> bool:
        """Whether a call that may have run is to be sent again. It counts as such."""
        if self._finished or self.cancelled_by or self.breaks >= MAX_BREAKS:
            return False
        self.breaks += 1
        if self.options.idempotent or self.call.method in self.route.idempotent:
            return True
        if self.retries > 0:
            self.retries -= 1
            return True
        return False

    def fail_maybe(self) -> None:
        """End a call that may have run, and whose result is lost."""
        self.fail(
            MaybeExecutedError("the connection broke after the call was sent: it may have run", ran=True)
        )

    def _decoded(self) -> T:
        value = self._value
        if value is None:
            value = self._value = [self._decode()]
            self._answer = None
        return value[0]

    def _decode(self) -> T:
        answer = self._answer
        if answer is None or answer.reply is None:  # another thread was quicker
            if self._error is not None:
                raise self._error
            return cast("list[T]", self._value)[0]
        reply, settings = answer.reply, self.route.settings
        pickles = settings.allow_pickle and bool(settings.identity)
        payload = payload_of(answer.buffers, reply.result)
        size = len(payload) + sum(len(b) for b in answer.buffers)
        try:
            if int(reply.codec) == Codec.PICKLE and not pickles:
                raise DeniedError("pickle is refused: allow_pickle and an identity are needed", ran=True)
            return cast(
                "T",
                decode_result(
                    reply.codec,
                    payload,
                    answer.buffers,
                    on_actor=self.route.on_actor,
                    allow_pickle=pickles,
                    memory=decoded_limit(settings.max_message_bytes, size),
                ),
            )
        except DeniedError as err:
            self._error = err.at(self.route.name, self.call.method)
        except CodecTooLargeError as err:
            too_large = TooLargeError(err.problem, ran=True)
            self._error = too_large.at(self.route.name, self.call.method)
        except CodecError as err:
            error = EncodingError(f"the result cannot be read: {err.problem}", ran=True, argument=err.path)
            self._error = error.at(self.route.name, self.call.method)
        except Exception as err:  # such as of a reference that leads nowhere
            error = EncodingError(f"the result cannot be read: {err}", ran=True)
            self._error = error.at(self.route.name, self.call.method)
        answer.buffers, payload = (), b""  # the error's traceback refers to them
        self._answer = None
        raise self._error
