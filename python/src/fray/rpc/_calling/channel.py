"""The calls of this process to the server at one address, over whatever connections that takes.

Calls are numbered in the order in which they are sent. When a connection breaks they are sent again, in the
same order, if the same server answers there; so each runs once. Otherwise they go back to their routes, which
decide what becomes of them.
"""

from __future__ import annotations

import os
import threading
from _thread import allocate_lock, start_new_thread
from dataclasses import replace
from functools import lru_cache
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from fray.rpc._calling.connection import Connection
from fray.rpc._calling.outcome import SENDING
from fray.rpc._transport import fork as _fork
from fray.rpc._transport.names import random_name
from fray.rpc._transport.settings import Settings
from fray.rpc.errors import ActorError, TooLargeError, UnavailableError
from fray.rpc.options import MAX_BREAKS

if TYPE_CHECKING:
    from fray.rpc._calling.ongoing import OngoingCall

_GONE = 2.0  # seconds of refused connections after which a server is taken for gone
_FIRST, _LONGEST = 0.02, 1.0  # seconds between two tries to connect
_TURN, _LONGEST_TURN = 0.001, 0.02  # seconds
_LEAST = 0.5  # seconds that a server which was silent has to answer


class Channel:
    """Sends calls to one address. All methods may be used from any thread; `lost` and `forget` never wait."""

    def __init__(self, address: str, settings: Settings) -> None:
        self.address, self._asked = address, settings
        self.forget_parent()
        _fork.begins_anew(self)

    def forget_parent(self) -> None:
        """Begin anew, without connections or calls."""
        # Numbers are counted here, so a server has to know this channel from others.
        self.settings = replace(self._asked, peer=random_name())
        self._lock = allocate_lock()  # of the order of calls
        self._opening = threading.Lock()
        self._restoring = allocate_lock()  # held by the thread that restores broken calls
        self._connection: Connection | None = None
        self._peer = ""  # the process that answered last, as Handshake.peer
        self._seq = 0  # the last one that it was sent
        self._outstanding: dict[int, OngoingCall[Any]] = {}  # by seq, in its order
        self.pickles: bool | None = None
        """Whether the server took pickle as the fallback when it last answered; None: it never did."""
        self._failure: tuple[float, ActorError] | None = None  # when an attempt to connect failed last

    # Calls

    def send(self, future: OngoingCall[Any], later: bool) -> bool:
        """Send a call; return False if there is no connection to send it on, or others come before it."""
        with self._lock:
            connection = self._connection
            if connection is None or connection.stopping or future.route.returned:
                return False
            if future.deadline is not None and not future.stamp():
                return True
            if future.plain is not None and not future.choose_codec(connection.pickles):
                return True
            seq = self._seq + 1
            call, outstanding = future.call, self._outstanding
            call.seq = seq
            try:
                outstanding[seq] = future
                call.acked = self._acked()
                future.channel, future.lost, future.later = self, False, later
                future.sent = SENDING
                if future.claimed:  # given up just now, as not sent
                    del outstanding[seq]
                    return True
                future.sent = connection.call(call, future.buffers, future.answered, later)
            except TooLargeError as err:
                del outstanding[seq]
                future.fail(err)
            except UnavailableError:
                del outstanding[seq]
                future.sent = future.channel = None
                return False
            except BaseException:  # out of a handler of a signal: the server may have it
                self._seq = seq
                outstanding.pop(seq, None)
                connection.close()
                raise
            else:
                self._seq = seq
            return True

    def _acked(self) -> int:
        try:
            first: int = next(iter(self._outstanding))
        except RuntimeError:
            return 0  # another was answered just now; a later call will report it
        return first - 1

    def flush(self) -> None:
        """Write what was left for later."""
        connection = self._connection
        if connection is not None:
            connection.flush()

    def attend(self, future: OngoingCall[Any], seconds: float) -> None:
        """Receive on this thread until a call is answered, unless another one does; for at most so long."""
        connection, sent = self._connection, future.sent
        if connection is not None and sent is not None:
            connection.attend(sent, seconds)

    def forget(self, seq: int) -> None:
        """Note that a call was answered."""
        last = self._seq
        outstanding = self._outstanding
        outstanding.pop(seq, None)
        connection = self._connection
        if not outstanding and connection is not None:
            connection.acked(last)

    def cancel(self, future: OngoingCall[Any]) -> bool:
        """Ask the server to cancel a call; return False if it certainly does not have it."""
        if future.sent is None:
            return False
        connection = self._connection
        if connection is not None and self._outstanding.get(future.call.seq) is future:
            connection.cancel(future.call.seq)
        return True

    def acknowledge(self, future: OngoingCall[Any], taken: int) -> None:
        """Report how many items of a call's stream were taken; if it is sent again, that says so."""
        with self._lock:
            connection = self._connection
            seq = future.call.seq
            if connection is not None and self._outstanding.get(seq) is future:
                connection.acknowledge(seq, taken)

    def has_calls_of(self, route: object) -> bool:
        """Return whether calls of a route are unanswered, and a caller waits for them."""
        return any(future.route is route and not future.done() for future in list(self._outstanding.values()))

    def has_unsent_calls_of(self, route: object) -> bool:
        """Return whether there are calls of a route that its broken connection never sent."""
        if self.connected:
            return False
        return any(
            future.route is route and not future.done() and future.unsent
            for future in list(self._outstanding.values())
        )

    # Connections

    @property
    def peer(self) -> str:
        """The process that answered last, as Handshake.peer."""
        return self._peer

    @property
    def connected(self) -> bool:
        """Whether there is a connection that takes calls."""
        connection = self._connection
        return connection is not None and not connection.closed and not connection.stopping

    @property
    def amid(self) -> bool:
        """Whether a thread is sending a call, or this one is receiving one."""
        connection = self._connection
        return self._lock.locked() or (connection is not None and connection.amid)

    def connect(self, timeout: float) -> Connection:
        """Return the connection, which is opened if there is none: once for all that ask at the same time.

        Raises:
            ActorError: as Connection.open.
        """
        asked, pause = monotonic(), _TURN
        while True:
            with self._opening:
                if not self._restoring.locked():
                    connection = self._connection
                    if connection is not None and not connection.closed:
                        if connection.stopping:
                            raise UnavailableError(f"the server at {self.address} is shutting down")
                        return connection
                    if self._failure is not None and self._failure[0] >= asked:
                        raise self._failure[1]
                    if not self._outstanding:
                        return self._open()
                    self.lost()  # what is unanswered goes first
            left = asked + timeout - monotonic()
            if left <= 0:
                raise UnavailableError(f"the connection to {self.address} is being restored")
            sleep(min(pause, left))
            pause = min(_LONGEST_TURN, 2 * pause)

    def _open(self) -> Connection:
        try:
            connection = Connection.open(self.address, self.settings)
        except ActorError as err:
            self._failure = (monotonic(), err)
            raise
        try:
            with self._lock:
                self._adopt(connection)
        except BaseException:  # out of a handler of a signal
            connection.close()
            raise
        return connection

    def _adopt(self, connection: Connection) -> None:
        if connection.peer.peer != self._peer or not self._peer:
            self._peer, self._seq = connection.peer.peer, 0
        self._connection, self.pickles = connection, connection.pickles

    # Broken connections

    def lost(self) -> None:
        """Restore the calls of a connection that broke, on another thread."""
        if not self._restoring.locked():
            start_new_thread(self._restore, ())

    def _restore(self) -> None:
        if not self._restoring.acquire(False):  # another thread does; handlers of signals run in none
            return
        try:
            with self._opening:
                pass  # a connection that was being opened is there now, and no other is opened
            with self._lock:
                broken = self._connection
                if broken is not None and not broken.closed:
                    return  # it was opened since, as there was nothing to restore any more
                self._connection = None
            if broken is not None:
                broken.close()
            silent = broken is not None and broken.silent
            # Only then is it certain of each call whether it may have arrived.
            while any(not future.lost for future in list(self._outstanding.values())):
                sleep(_TURN)
            self._send_again(silent)
        finally:
            self._restored()

    def _restored(self) -> None:
        """End restoring, and restore calls that were lost meanwhile."""
        self._restoring.release()
        connection = self._connection
        if self._outstanding and (connection is None or connection.closed):
            self.lost()

    def _send_again(self, silent: bool) -> None:
        """Send what is unanswered again, or give it back: after one try where the server was silent."""
        began, refused, pause = monotonic(), None, _FIRST
        settings = self._hurried() if silent else self.settings
        while self._prune():
            try:
                connection = Connection.open(self.address, settings)
            except UnavailableError as err:
                self._failure = (monotonic(), err)
                if isinstance(err.__cause__, ConnectionRefusedError):
                    refused = refused or monotonic()
                else:
                    refused = None
                gone = refused is not None and monotonic() - refused >= _GONE
                self._give_up(lambda f, g=gone or silent: g or self._overdue(f, began), silent)
                silent, settings = False, self.settings
                sleep(pause)
                pause = min(_LONGEST, 2 * pause)
                continue
            except ActorError as err:
                self._failure = (monotonic(), err)
                self._give_up(lambda _: True, lives=True)
                return
            self._resume(connection)
            return

    def _hurried(self) -> Settings:
        """Return the settings for a server that was silent: it has half of the patience to answer."""
        settings = self.settings
        within = max(_LEAST, settings.patience / 2)
        return replace(settings, connect_timeout=min(settings.connect_timeout, within))

    def _prune(self) -> bool:
        """Drop calls that have ended; return whether there are others."""
        for seq, future in list(self._outstanding.items()):
            if future.done():
                self._outstanding.pop(seq, None)
        return bool(self._outstanding)

    def _overdue(self, future: OngoingCall[Any], began: float) -> bool:
        return monotonic() - began >= future.options.resolve_timeout or future.route.left(self.address)

    def _give_up(self, over: Any, lives: bool = False) -> None:
        for seq, future in list(self._outstanding.items()):
            if over(future):
                self._give_back(seq, future, lives)

    def _give_back(self, seq: int, future: OngoingCall[Any], lives: bool = False) -> None:
        """Let its route decide about a call whose server is lost, which finds it here until then."""
        try:
            future.route.lost(future, lives)
        finally:
            self._outstanding.pop(seq, None)

    def _resume(self, connection: Connection) -> None:
        with self._lock:
            if connection.peer.peer != self._peer:
                for seq, future in list(self._outstanding.items()):
                    self._give_back(seq, future)  # before what is sent from now on could overtake them
            for future in self._blamed():
                future.route.lost(future, lives=True)
            self._adopt(connection)
            for future in list(self._outstanding.values()):
                future.arrived |= future.sent is not None and future.sent.may_have_arrived
                future.attempts += 1
                future.call.attempt = future.attempts
                future.lost = False
                if future.inbox is not None:
                    future.inbox.ask(future.call.stream)
                if future.deadline is not None and not future.stamp():
                    self._outstanding.pop(future.call.seq, None)
                    continue
                if future.plain is not None and not future.choose_codec(connection.pickles):
                    self._outstanding.pop(future.call.seq, None)
                    continue
                try:
                    future.sent = connection.call(future.call, future.buffers, future.answered, True)
                except TooLargeError as err:
                    self._outstanding.pop(future.call.seq, None)
                    future.fail(err)
                except UnavailableError:
                    future.lost = True  # it broke again, so all of this begins anew
        connection.flush()

    def _blamed(self) -> list[OngoingCall[Any]]:
        """Take out the first call if too many connections broke while it was that: it may be why."""
        for seq, future in list(self._outstanding.items())[:1]:
            future.breaks += 1
            if future.breaks > MAX_BREAKS:
                future.arrived |= future.sent is not None and future.sent.may_have_arrived
                self._outstanding.pop(seq, None)
                if future.arrived:
                    return [future]
                future.fail(UnavailableError(f"{future.breaks} connections broke before all of it was sent"))
        return []

    def close(self) -> None:
        """Close the connection. Calls that are unanswered are lost."""
        with self._lock:
            connection = self._connection
        if connection is not None:
            connection.close()


class Channels:
    """All channels of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channels: dict[tuple[str, Settings], Channel] = {}

    def at(self, address: str, settings: Settings) -> Channel:
        """Return the channel to an address, always the same."""
        with self._lock:
            channel = self._channels.get((address, settings))
            if channel is None:
                channel = self._channels[address, settings] = Channel(address, settings)
            return channel

    def connected(self, address: str, settings: Settings) -> Channel | None:
        """Return the channel to an address if it can take calls at once."""
        channel = self._channels.get((address, settings))
        return channel if channel is not None and channel.connected else None

    def close(self) -> None:
        """Close all connections. They are opened again where they are needed."""
        with self._lock:
            channels = list(self._channels.values())
        for channel in channels:
            channel.close()


def channels() -> Channels:
    """Return those of this process."""
    return _channels_of(os.getpid())


@lru_cache(maxsize=1)
def _channels_of(_pid: int) -> Channels:
    return Channels()
