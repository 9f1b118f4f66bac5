"""The calls of this process to one actor, wherever that is: their order, and what happens when it moves."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from collections import deque
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from fray.cluster.errors import ClusterError, ClusterUnavailableError
from fray.rpc import _fork
from fray.rpc._amid import interrupts
from fray.rpc._channel import Channel, channels
from fray.rpc._resolve import Endpoint
from fray.rpc.errors import (
    ActorError,
    CancelledError,
    Code,
    DeniedError,
    StaleError,
    UnavailableError,
    UnknownActorError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from fray.rpc._connection import Settings
    from fray.rpc._resolve import Directory
    from fray.rpc.codec import ActorRef
    from fray.rpc.future import ActorFuture

_AGAIN = frozenset({Code.STALE, Code.STOPPING, Code.UNKNOWN_ACTOR, Code.BUSY, Code.UNAVAILABLE})
_FIRST, _LONGEST = 0.02, 1.0  # seconds between two tries
_FORGIVEN = 5.0  # seconds after which a failure makes the next try wait no more
_TURN, _LONGEST_TURN = 0.001, 0.05  # seconds
_MAX_CALLS = 10_000  # that wait until the actor is found, before those who make more wait, too
_MAX_BYTES = 256 << 20  # of their arguments
_LAG = 0.5  # seconds by which a registry may know later than a server
_METHODS = 5.0  # seconds to wait for the list of methods


class Route:
    """Sends calls to an actor, in the order in which they are made.

    While it does not know where the actor is, calls queue up here and a thread looks for it. `refused`,
    `learned` and `lost` never wait.
    """

    def __init__(
        self,
        directory: Directory,
        name: str,
        settings: Settings,
        on_actor: Callable[[ActorRef], Any],
        prefer: Endpoint | None = None,
        pinned: bool = False,
    ) -> None:
        """Make the route of a name.

        Args:
            directory: Knows where the actor is.
            name: The actor's.
            settings: Of connections to it.
            on_actor: Makes handles of the references in results.
            prefer: Which endpoint of several that share the name, as long as it is there.
            pinned: Never take another one than that member of the name, or its next incarnation.
        """
        self.directory, self.name, self.settings, self.on_actor = directory, name, settings, on_actor
        settled = directory.settings(settings, wait=False)
        if settled is not None:
            self.settings = settled
        self._settled = settled is not None  # that the settings are complete
        self._prefer, self._pinned = prefer, pinned
        self._aside = False  # see _beside
        self.forget_parent()
        _fork.begins_anew(self)

    def forget_parent(self) -> None:
        """Begin anew, without calls."""
        self.idempotent: frozenset[str] = frozenset()
        self.incarnation = ""
        self._lock = allocate_lock()  # of the order of calls
        self._number = 0
        self._side: Route | None = None
        self._channel: Channel | None = None  # calls go there at once
        self._last: Channel | None = None  # where earlier ones went
        self._queue: list[ActorFuture[Any]] = []
        self._bytes = 0  # of their arguments
        self.returned: deque[tuple[ActorFuture[Any], ActorError]] = deque()  # before what is sent later
        self._settling = allocate_lock()  # held by the thread that looks for the actor
        self._waking = False  # such a thread is about to begin
        self._failed: Endpoint | None = None  # what was no use
        self._failed_at = 0.0
        self._pause = _FIRST
        self._error: ActorError | None = None  # why

    @property
    def key(self) -> tuple[object, ...]:
        """What handles of the same actor have in common."""
        place = self.directory.endpoints(self.name)[0].address if not self.directory.namespace else ""
        return self.directory.namespace, self.name, place, self._prefer if self._pinned else None

    def reference(self) -> tuple[str, str, str, str]:
        """Return the name, the namespace, the URL where the actor was last, and the member of a pinned route.

        What is not known is "".
        """
        endpoint = self._choose(self.directory.known(self.name))
        if endpoint is None and self._last is not None:
            endpoint = Endpoint(self.name, self._last.address)
        member = self._prefer.member if self._pinned and self._prefer and self.directory.namespace else ""
        return self.name, self.directory.namespace, endpoint.url if endpoint is not None else "", member

    # Calls

    def submit(self, future: ActorFuture[Any], later: bool) -> None:
        """Send a call, or queue it; while too much is queued, wait for room or until the call is over."""
        barred = self._lock.locked() and interrupts()
        if not barred:
            with self._lock:
                channel = self._channel or self._connected()
                barred = (channel.amid if channel is not None else not self._aside) and interrupts()
                if not barred:
                    self._number = future.number = self._number + 1
                    if channel is not None:
                        future.call.incarnation = self.incarnation
                        if channel.send(future, later):
                            return
                        self._channel = None
                    future.since = monotonic()
                    self._queue.append(future)
                    self._bytes += future.size
        if barred:
            future.route = self._beside()
            future.route.submit(future, later)
            return
        self._wake()
        if self._crowded:
            self._wait_for_room(future)

    def _beside(self) -> Route:
        """Return the route of calls that interrupt those of this one, which has connections of its own."""
        if self._side is None:
            settings = replace(self.settings, peer=f"{self.settings.peer}+")
            side = Route(self.directory, self.name, settings, self.on_actor, self._prefer, self._pinned)
            self._side, side._aside, side.idempotent = side, True, self.idempotent
        return self._side

    @property
    def _crowded(self) -> bool:
        return len(self._queue) > _MAX_CALLS or self._bytes > _MAX_BYTES

    def _wait_for_room(self, future: ActorFuture[Any]) -> None:
        pause = _TURN
        while self._crowded and not future.done():
            if future.deadline is not None:
                pause = min(pause, future.deadline - monotonic())
            if pause <= 0:
                return  # whoever waits for it ends it now
            sleep(pause)
            pause = min(_LONGEST_TURN, 2 * pause)

    def _connected(self) -> Channel | None:
        """Return where the actor is if that takes no waiting, as this process has a connection there."""
        looked_for = self._waking or self._settling.locked()
        if looked_for or self._queue or self.returned or self._failed is not None or not self._settled:
            return None
        endpoint = self._choose(self.directory.known(self.name))
        channel = channels().connected(endpoint.address, self.settings) if endpoint is not None else None
        if endpoint is not None and channel is not None:
            self.incarnation = endpoint.incarnation
            self._channel = self._last = channel
            start_new_thread(self._learn_methods, (channel,))
        return channel

    def endpoint(self, timeout: float) -> Endpoint:
        """Return where the actor is, as far as that is known.

        Raises:
            UnknownActorError: it is nowhere.
        """
        until = monotonic() + timeout
        while True:
            found = self._find()
            if found is not None:
                return found._replace(incarnation=found.incarnation or self.incarnation)
            if monotonic() >= until:
                raise self._unknown()
            self.directory.wait(self.name, min(_LONGEST, max(0.0, until - monotonic())))

    # What becomes of them, told by connections and channels

    def learned(self, future: ActorFuture[Any], incarnation: str) -> None:
        """Take note of the incarnation that answers, where no registry told."""
        if future.channel is self._channel:
            self.incarnation = incarnation

    def refused(self, future: ActorFuture[Any], error: ActorError) -> None:
        """Take back a call that its server did not carry out, or end it."""
        if future.done() or future.cancelled_by:
            future.fail(error)
        elif (error.code in _AGAIN and not error.ran) or (
            error.code is Code.MAYBE_EXECUTED and future.may_repeat()
        ):
            future.may_have_run |= error.ran
            self._give_back(future, error)
        else:
            future.fail(error)

    def lost(self, future: ActorFuture[Any]) -> None:
        """Take back a call whose server is lost, if that cannot have it or it may run twice; else end it."""
        unavailable = UnavailableError("the connection broke before the call was sent")
        if future.cancelled_by:
            future.fail(CancelledError("the call was cancelled", ran=future.sent is not None))
        elif not future.arrived and (future.sent is None or not future.sent.may_have_arrived):
            self._give_back(future, unavailable)
        elif future.may_repeat():
            future.may_have_run = True
            self._give_back(future, unavailable)
        else:
            future.fail_maybe()

    def left(self, address: str) -> bool:
        """Return whether the actor is known to be somewhere else now, or nowhere."""
        try:
            found = self._choose(self.directory.endpoints(self.name))
        except ClusterError:
            return False
        if found is None or found.address != address:
            return True
        return bool(found.incarnation) and found.incarnation != self.incarnation

    def _give_back(self, future: ActorFuture[Any], error: ActorError) -> None:
        if not future.since or error.code is Code.BUSY:
            future.since = monotonic()
        self.returned.append((future, error))
        self._wake()

    # The thread that looks for the actor

    def _wake(self) -> None:
        if not self._waking and not self._settling.locked():
            self._waking = True  # no handler of a signal comes between this and the next
            start_new_thread(self._settle, ())

    def _settle(self) -> None:
        first = self._settling.acquire(False)
        self._waking = False
        if not first:
            return
        sent = False
        incarnation = self.incarnation
        try:
            while self._collect():
                sent = self._attempt() or sent
        finally:
            self._settling.release()
        if self.returned or (self._queue and self._channel is None):
            self._wake()
        if sent and self._last is not None and (not incarnation or incarnation != self.incarnation):
            self._learn_methods(self._last)

    def _collect(self) -> bool:
        """Bring what came back and what was queued into its order; return whether that is anything."""
        with self._lock:
            if not self.returned and not self._queue:
                return False
            if self._channel is not None:
                self._last, self._channel = self._channel, None
        self._wait_for_others()
        back = []
        while self.returned:
            future, error = self.returned.popleft()
            future.sent = future.channel = None
            future.arrived = False
            future.attempts += 1
            future.call.attempt = future.attempts
            self._note(future, error)
            back.append(future)
        with self._lock:
            self._queue = [future for future in back + self._queue if not future.done()]
            self._queue.sort(key=lambda future: future.number)
            self._bytes = sum(future.size for future in self._queue)
            return bool(self._queue)

    def _wait_for_others(self) -> None:
        """Let what was sent be answered, or it would be overtaken by what came back before it."""
        pause = _TURN
        while self.returned and self._last is not None and self._last.has_calls_of(self):
            sleep(pause)
            pause = min(_LONGEST_TURN, 2 * pause)

    def _note(self, future: ActorFuture[Any], error: ActorError) -> None:
        """Remember what was no use, and why."""
        last = self._last
        if error.code is Code.UNKNOWN_ACTOR and last is not None and not self._moves_from(last.address):
            future.fail(error)
            return
        self._error, self._failed_at = error, monotonic()
        if last is not None and self._failed is None:
            self._failed = Endpoint(self.name, last.address, self.incarnation)

    def _moves_from(self, address: str) -> bool:
        """Return whether an actor that its server does not know is elsewhere; that may show later."""
        if not self.left(address) and self.directory.namespace:
            self.directory.wait(self.name, _LAG)
        return self.left(address)

    def _attempt(self) -> bool:
        """Send what is queued, if the actor is found; else wait a little. Return whether it was found."""
        endpoint = self._found()
        if endpoint is None or self._is_failed(endpoint):
            self._fail_overdue(endpoint)
            self.directory.wait(self.name, self._pause)
            self._pause = min(_LONGEST, 2 * self._pause)
            endpoint = self._found()
        if endpoint is None:
            return False
        if not self._settled and not self._complete(endpoint):
            return False
        self._failed = None
        channel = channels().at(endpoint.address, self.settings)
        try:
            channel.connect(self.settings.connect_timeout)
        except UnavailableError as err:
            self._failed, self._failed_at, self._error = endpoint, monotonic(), err
            return False
        except ActorError as err:
            self._fail_all(err)
            return False
        self._send(endpoint, channel)
        return True

    def _complete(self, endpoint: Endpoint) -> bool:
        """Complete the settings with what this process shows to the actor; return whether they are."""
        try:
            settings = self.directory.settings(self.settings)
        except ClusterError as err:
            unknown = f"this program did not get the identity of namespace {self.directory.namespace}: {err}"
            if isinstance(err, ClusterUnavailableError):
                self._failed, self._failed_at = endpoint, monotonic()
                self._error = UnavailableError(unknown)
            else:
                self._fail_all(DeniedError(unknown))
            return False
        self.settings, self._settled = settings or self.settings, True
        return True

    def _found(self) -> Endpoint | None:
        try:
            return self._find()
        except ClusterError as err:
            self._error = UnavailableError(f"it is not known where the actor is: {err}")
            return None

    def _is_failed(self, endpoint: Endpoint) -> bool:
        failed = self._failed
        if failed is None or (not endpoint.incarnation and isinstance(self._error, StaleError)):
            return False
        same = failed.address == endpoint.address and endpoint.incarnation in ("", failed.incarnation)
        if not same or monotonic() - self._failed_at > _FORGIVEN:
            self._failed, self._pause = None, _FIRST
            return False
        return True

    def _send(self, endpoint: Endpoint, channel: Channel) -> None:
        with self._lock:
            self.incarnation = endpoint.incarnation
            while self._queue:
                future = self._queue[0]
                future.call.incarnation = self.incarnation
                if not future.done() and not channel.send(future, True):
                    break
                self._queue.pop(0)
                self._bytes -= future.size
            else:
                self._channel = channel
            self._last = channel
        channel.flush()

    def _fail_overdue(self, endpoint: Endpoint | None) -> None:
        now = monotonic()
        error = self._unknown() if endpoint is None and self._error is None else self._error
        for future in list(self._queue):
            if now - future.since >= future.options.resolve_timeout and error is not None:
                future.fail(_renewed(error))

    def _fail_all(self, error: ActorError) -> None:
        with self._lock:
            queue, self._queue, self._bytes = self._queue, [], 0
        for future in queue:
            future.fail(_renewed(error))

    # Where the actor is

    def _find(self) -> Endpoint | None:
        return self._choose(self.directory.endpoints(self.name))

    def _choose(self, endpoints: list[Endpoint]) -> Endpoint | None:
        prefer = self._prefer
        if prefer is not None:
            if self._pinned:
                endpoints = [endpoint for endpoint in endpoints if endpoint.member == prefer.member]
            for endpoint in endpoints:
                if endpoint.address == prefer.address and prefer.incarnation in ("", endpoint.incarnation):
                    return endpoint
        failed = self._failed
        if failed is not None and not self._pinned:
            endpoints = [e for e in endpoints if e.address != failed.address] or endpoints
        return endpoints[-1] if endpoints else None

    def _unknown(self) -> ActorError:
        return UnknownActorError(self.directory.missing(self.name))

    def _learn_methods(self, channel: Channel) -> None:
        """Ask which methods may run twice, for the time when the connection is lost."""
        try:
            methods = channel.connect(0).list_methods(self.name, _METHODS).methods
        except ActorError:
            return
        self.idempotent = frozenset(method.name for method in methods if method.idempotent)


def _renewed(error: ActorError) -> ActorError:
    """Return an error of its own for each call: it names the call's method."""
    return type(error)(error.message, near=error.near)
