"""Which calls of each caller began, so that one which is sent again runs once.

Replies are kept until their caller acknowledges them, or there are too many. Running calls is left to
`_serving.call`.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from fray.rpc._serving.arguments import Arguments
from fray.rpc._transport import background as _background
from fray.rpc.errors import CancelledError

if TYPE_CHECKING:
    from fray.rpc._serving.reply import Answerer, Reply
    from fray.rpc._serving.stream import ServerStream
    from fray.rpc._transport.memory import Reservation

MAX_KEPT: Final = 256 << 20
"""Bytes of replies that no caller has acknowledged."""
_MAX_CALLERS = 100_000  # without connections
REPLIES_LAST: Final = 50.0
"""Seconds for which replies are kept after their caller's last connection ended."""
CALLER_LASTS: Final = 24 * 3600.0
"""Likewise for its name and the highest number of its calls: without, one sent again would run again."""
_OVERHEAD = 300  # bytes of a reply beside what it carries


class Entry:
    """What the ledger knows of a call."""

    __slots__ = ("attempt", "complete", "former", "over", "rejected", "reply", "seq", "stream", "to")

    def __init__(self, seq: int, attempt: int, to: Answerer) -> None:
        self.seq, self.attempt = seq, attempt
        self.to: Answerer | None = to
        """Takes the reply to the connection that the call came by last."""
        self.reply: Reply | None = None
        """Kept until it is acknowledged."""
        self.rejected = False
        """It did not run."""
        self.stream: ServerStream | None = None
        """Of a method that has returned an iterator."""
        self.over = False
        """It was answered."""
        self.complete = True
        """Its arguments are here."""
        self.former: Entry | None = None
        """The same call as it was sent before, of which not all came."""

    @property
    def held_for(self) -> str:
        """The name of the actor, if there is a message."""
        return ""


E = TypeVar("E", bound=Entry)


class Verdict(Enum):
    """What to do with a call that came."""

    NEW = "new"
    REPLAY = "replay"
    """The reply is there."""
    AWAIT = "await"
    """The reply will go to the connection that asked last."""
    LOST = "lost"
    """Whether it ran is not known."""
    OLD = "old"
    """A broken connection brought it after a later one had: no caller waits there."""


class Caller(Generic[E]):
    """One process that calls, by Handshake.peer."""

    __slots__ = ("acked", "arguments", "calls", "connections", "highest", "left", "peer", "since", "turn")

    def __init__(self, peer: str) -> None:
        self.peer = peer
        self.highest = self.acked = self.connections = 0
        self.calls: dict[int, E] = {}
        self.arguments: Arguments[E] = Arguments()
        self.since = 0.0  # without connections
        self.left = False  # its replies are not kept
        self.turn = threading.Lock()
        """Held from a call's beginning in the ledger until its actor has it: calls of two connections, of
        which one is broken, keep their order."""


class _Large(Generic[E]):
    """What is kept of a large reply beside it."""

    __slots__ = ("caller", "evicted", "room")

    def __init__(self, caller: Caller[E], room: Reservation) -> None:
        self.caller, self.room = caller, room
        self.evicted: Callable[[], object] | None = None


class Ledger(Generic[E]):
    """All callers of a server."""

    def __init__(
        self,
        limit: int = MAX_KEPT,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Ledger[E]], None] | None = None,
    ) -> None:
        """Make an empty one.

        Args:
            limit: Bytes of replies that are kept.
            clock: Returns the time in seconds.
            later: Has `expire` called at such a time; None: on the thread for deadlines.
        """
        self._limit, self._clock, self._later = limit, clock, later
        self._lock = threading.Lock()
        self._callers: dict[str, Caller[E]] = {}
        self._away: OrderedDict[str, Caller[E]] = OrderedDict()  # without connections
        self._left: OrderedDict[str, Caller[E]] = OrderedDict()  # likewise, without replies
        self._expires = False  # `later` was asked
        self._kept: OrderedDict[E, tuple[Caller[E], int]] = OrderedDict()
        self.kept_bytes = 0
        self._large: OrderedDict[E, _Large[E]] = OrderedDict()

    def open(self, peer: str) -> Caller[E]:
        """Return the caller that connected."""
        with self._lock:
            caller = self._callers.get(peer)
            if caller is None:
                caller = self._callers[peer] = Caller(peer)
            caller.connections += 1
            self._away.pop(peer, None)
            self._left.pop(peer, None)
            caller.left = False
            self._forget()
            return caller

    def close(self, caller: Caller[E]) -> None:
        """Note that a connection of a caller ended."""
        with self._lock:
            caller.connections -= 1
            if caller.connections:
                return
            if not caller.highest:
                self._callers.pop(caller.peer, None)
                return
            caller.since = self._clock()
            self._away[caller.peer] = caller
            self._forget()
            self._expire_later()

    def done(self) -> bool:
        """Return whether `expire` need not be called."""
        return False

    def expire(self) -> None:
        """Free what callers have left behind."""
        with self._lock:
            self._expires = False
            self._forget()
            self._expire_later()

    def _expire_later(self) -> None:
        if self._expires or not self._away:
            return
        self._expires = True
        when = next(iter(self._away.values())).since + REPLIES_LAST
        if self._later is not None:
            self._later(when, self)
        else:
            _background.deadlines().add(when, self)

    def begin(self, caller: Caller[E], call: E, acked: int) -> tuple[Verdict, E]:
        """Return what to do with a call that came, and the one that is there already."""
        seq = call.seq
        with self._lock:
            if acked > caller.acked:
                self._acknowledge(caller, acked)
            if seq > caller.highest:
                caller.highest = seq
                caller.calls[seq] = call
                return Verdict.NEW, call
            known = caller.calls.get(seq)
            if known is None:
                return Verdict.LOST, call
            if call.attempt < known.attempt:
                return Verdict.OLD, known
            if known.rejected or not known.complete:  # it did not run
                call.former = None if known.rejected else known
                caller.calls[seq] = call
                return Verdict.NEW, call
            if known.reply is not None:
                return Verdict.REPLAY, known
            known.to, known.attempt = call.to, call.attempt
            return Verdict.AWAIT, known

    def opened(self, call: E, stream: ServerStream) -> Answerer | None:
        """Note the stream of a call that runs; return what it goes to."""
        with self._lock:
            call.stream = stream
            return call.to

    def streams_to(self, caller: Caller[E], to: Answerer) -> list[E]:
        """Return the calls that run and stream to a connection."""
        with self._lock:
            return [c for c in caller.calls.values() if c.to is to and c.stream is not None]

    def finish(
        self, caller: Caller[E], call: E, reply: Reply, beside: int = 0, room: Reservation | None = None
    ) -> Answerer | None:
        """Keep a reply until it is acknowledged; return what takes it to its caller.

        It takes `beside` bytes more than it carries. A large one has a reservation, released with it.
        """
        message, buffers = reply
        rejected = message.HasField("error") and not message.error.ran
        size = _OVERHEAD + beside + len(message.result)
        if buffers:
            size += sum(len(b) for b in buffers)
        with self._lock:
            to, call.to = call.to, None
            if caller.left:
                self._drop(caller, call.seq)
            if caller.calls.get(call.seq) is not call:
                if room is not None:
                    room.release()
                return to  # its caller will not ask for it
            if rejected:
                call.rejected = True
                return to
            call.reply = reply
            if room is not None:
                self._large[call] = _Large(caller, room)
                return to
            self._kept[call] = (caller, size)
            self.kept_bytes += size
            while self.kept_bytes > self._limit and self._kept:
                oldest, (whose, _) = next(iter(self._kept.items()))
                self._drop(whose, oldest.seq)
            return to

    def acknowledge(self, caller: Caller[E], seq: int) -> None:
        """Forget the replies that a caller has."""
        with self._lock:
            if seq > caller.acked:
                self._acknowledge(caller, seq)

    def _acknowledge(self, caller: Caller[E], seq: int) -> None:
        seq = min(seq, caller.highest)
        if seq - caller.acked <= len(caller.calls):
            for number in range(caller.acked + 1, seq + 1):
                self._drop(caller, number)
        else:
            for number in [n for n in caller.calls if n <= seq]:
                self._drop(caller, number)
        caller.acked = max(caller.acked, seq)

    def _drop(self, caller: Caller[E], seq: int) -> None:
        call = caller.calls.pop(seq, None)
        if call is None:
            return
        if call.stream is not None and call.reply is None:  # its caller has acknowledged it unanswered
            call.stream.stop(CancelledError("the caller gave the stream up", ran=True))
        kept = self._kept.pop(call, None)
        if kept is not None:
            self.kept_bytes -= kept[1]
        large = self._large.pop(call, None)
        if large is not None:
            large.room.release()

    def lend(self, caller: Caller[E], seq: int, evicted: Callable[[], object]) -> Reply | None:
        """Return a reply that is sent in parts now; None: it is not kept any more.

        `evicted` is called if a large one has to be forgotten before it is freed.
        """
        with self._lock:
            call = caller.calls.get(seq)
            if call is None:
                return None
            large = self._large.get(call)
            if large is not None:
                large.evicted = evicted
            return call.reply

    def free(self, caller: Caller[E], seq: int) -> None:
        """Forget a large reply that its caller has; that call is not sent again."""
        with self._lock:
            call = caller.calls.get(seq)
            if call is not None and call in self._large:
                self._drop(caller, seq)

    def evict(self) -> bool:
        """Forget the oldest large reply; return whether there was one."""
        with self._lock:
            if not self._large:
                return False
            oldest, large = next(iter(self._large.items()))
            self._drop(large.caller, oldest.seq)
        if large.evicted is not None:
            large.evicted()
        return True

    def _forget(self) -> None:
        """Free the replies of callers that have been away for a while; drop others that were for long."""
        now = self._clock()
        while self._away:
            peer, caller = next(iter(self._away.items()))
            if len(self._away) <= _MAX_CALLERS and now - caller.since < REPLIES_LAST:
                break
            for seq, call in list(caller.calls.items()):
                if call.reply is not None or call.rejected:
                    self._drop(caller, seq)
            del self._away[peer]
            self._left[peer], caller.left = caller, True
        while self._left:
            peer, caller = next(iter(self._left.items()))
            if len(self._left) <= _MAX_CALLERS and now - caller.since < CALLER_LASTS:
                return
            del self._left[peer]
            self._callers.pop(peer, None)
