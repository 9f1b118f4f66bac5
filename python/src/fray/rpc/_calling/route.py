"""The calls of this process to one actor, wherever that is: their order, and what happens when it moves.

Connections are left to `_calling.channel`, and which of the actor's endpoints is used to `_calling.target`.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock, start_new_thread
from collections import deque
from dataclasses import replace
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from fray.cluster.errors import ClusterError, ClusterUnavailableError
from fray.rpc._calling import channel as _channel
from fray.rpc._calling import connection as _connection
from fray.rpc._calling.backlog import Backlog
from fray.rpc._calling.channel import Channel, channels
from fray.rpc._calling.resolve import Endpoint
from fray.rpc._calling.target import Target
from fray.rpc._calling.verdict import Verdicts
from fray.rpc._transport import fork as _fork
from fray.rpc._transport import writer as _writer
from fray.rpc._transport.amid import Interruptions
from fray.rpc.errors import (
    ActorDeadError,
    ActorDiedError,
    ActorError,
    CancelledError,
    Code,
    DeniedError,
    UnavailableError,
    cancelled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fray.rpc._calling.ongoing import HandleMaker, OngoingCall
    from fray.rpc._calling.resolve import Directory
    from fray.rpc._transport.settings import Settings

_AGAIN = frozenset({Code.STALE, Code.STOPPING, Code.UNKNOWN_ACTOR, Code.BUSY, Code.UNAVAILABLE})
_TURN, _LONGEST_TURN = 0.001, 0.05  # seconds
_METHODS = 5.0  # seconds to wait for the list of methods
_interrupts = Interruptions(sys.modules[__name__], _channel, _connection, _writer).here


class Route:
    """Sends calls to an actor, in the order in which they are made.

    While it does not know where the actor is, calls wait in its backlog, and a thread delivers them once the
    actor is found. `rejected`, `learned` and `lost` never wait.
    """

    def __init__(
        self,
        directory: Directory,
        name: str,
        settings: Settings,
        on_actor: HandleMaker,
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
            pinned: Never use another one than that member of the name, or its next incarnation.
        """
        self.settings, self.on_actor = settings, on_actor
        self._target = Target(directory, name, prefer, pinned)
        completed = directory.settings(settings, wait=False)
        if completed is not None:
            self.settings = completed
        self._complete = completed is not None  # the settings are
        self._for_handlers = False  # see _route_of_handlers
        self.forget_parent()
        _fork.begins_anew(self)

    def forget_parent(self) -> None:
        """Begin anew, without calls."""
        self.idempotent: frozenset[str] = frozenset()
        self.retries: Mapping[str, int] = {}
        self.incarnation = ""
        self._lock = allocate_lock()  # of the order of calls
        self._number = 0
        self._handler_route: Route | None = None
        self._channel: Channel | None = None  # calls go there at once
        self._last: Channel | None = None  # where earlier ones went
        self._backlog = Backlog()
        self._verdicts = Verdicts(self._target)
        self._delivering = allocate_lock()  # held by the thread that finds the actor
        self._starting = False  # such a thread is about to begin
        self._target.reset()

    @property
    def name(self) -> str:
        """The name of the actor."""
        return self._target.name

    @property
    def directory(self) -> Directory:
        """Knows where the actor is."""
        return self._target.directory

    @property
    def key(self) -> tuple[object, ...]:
        """What handles of the same actor have in common."""
        return self._target.key

    @property
    def returned(self) -> deque[tuple[OngoingCall[Any], ActorError]]:
        """Calls that are to be sent before all later ones."""
        return self._backlog.returned

    @property
    def pickles(self) -> bool | None:
        """Whether its server takes pickle as the fallback, as far as that is known."""
        channel = self._channel or self._last
        if channel is not None:
            return channel.pickles
        provable = self.settings.identity or self.settings.secret or not self._complete
        return None if provable else False

    def reference(self) -> tuple[str, str, str, str]:
        """Return the name, the namespace, the URL where the actor was last, and the member of a pinned route.

        What is not known is "".
        """
        return self._target.reference(self._last.address if self._last is not None else "")

    def expect(self) -> None:
        """Note that the actor was there: its end is the end of calls."""
        self._target.was_there = True

    # Calls

    def submit(self, future: OngoingCall[Any], later: bool) -> None:
        """Send a call, or queue it; while too much is queued, wait for room or until the call is over."""
        barred = self._lock.locked() and _interrupts()
        if not barred:
            with self._lock:
                channel = self._channel or self._connected()
                barred = (channel.amid if channel is not None else not self._for_handlers) and _interrupts()
                if not barred:
                    self._number = future.number = self._number + 1
                    if channel is not None:
                        future.call.incarnation = self.incarnation
                        if not future.unwritten and channel.send(future, later):
                            return
                        self._channel = None
                    self._backlog.add(future)
        if barred:
            future.route = self._route_of_handlers()
            future.route.submit(future, later)
            return
        self.deliver()
        if self._backlog.crowded:
            self._backlog.wait_for_room(future)

    def _route_of_handlers(self) -> Route:
        """Return the route of calls that interrupt those of this one, which has connections of its own.

        Handlers of signals and finalizers make them.
        """
        if self._handler_route is None:
            settings = replace(self.settings, peer=f"{self.settings.peer}+")
            target = self._target
            route = Route(
                target.directory, target.name, settings, self.on_actor, target.prefer, target.pinned
            )
            route._for_handlers, route.idempotent, route.retries = True, self.idempotent, self.retries
            self._handler_route = route
        return self._handler_route

    def _connected(self) -> Channel | None:
        """Return where the actor is if that takes no waiting, as this process has a connection there."""
        delivers = self._starting or self._delivering.locked()
        if delivers or not self._backlog.empty or self._target.failed or not self._complete:
            return None
        endpoint = self._target.known()
        channel = channels().connected(endpoint.address, self.settings) if endpoint is not None else None
        last = self._last
        if last is not None and last is not channel and last.has_unsent_calls_of(self):
            return None  # they would be overtaken
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
            found = self._target.find()
            if found is not None:
                return found._replace(incarnation=found.incarnation or self.incarnation)
            if monotonic() >= until:
                raise self._target.unknown()
            self._target.wait(until - monotonic())

    # What becomes of them, reported by futures and channels

    def learned(self, future: OngoingCall[Any], incarnation: str) -> None:
        """Note the incarnation that answered, where no registry reported it."""
        if future.channel is self._channel:
            self.incarnation = incarnation

    def rejected(self, future: OngoingCall[Any], error: ActorError) -> None:
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

    def lost(self, future: OngoingCall[Any], lives: bool = False) -> None:
        """Take back a call whose server is lost, if that cannot have it or it may run twice; else end it.

        `lives`: the server may live; it answers with an error, or does not answer any more.
        """
        unavailable = UnavailableError("the connection broke before the call was sent")
        if future.cancelled_by:
            future.fail(CancelledError("the call was cancelled", ran=future.sent is not None))
        elif future.unsent:
            self._give_back(future, unavailable)
        elif future.may_repeat():
            future.may_have_run, future.since = True, 0.0
            self._give_back(future, unavailable)
        else:
            self._verdicts.await_verdict(future, lives)

    def run_again(self, future: OngoingCall[Any], error: ActorError) -> None:
        """Take back a call whose method raised and is to run again."""
        future.may_have_run, future.since = True, 0.0
        self._give_back(future, error)

    def deliver(self) -> None:
        """Send what can be sent by now."""
        if self._backlog.ready:
            self._start_delivery()

    def left(self, address: str) -> bool:
        """Return whether the actor is known to be somewhere else now, or nowhere."""
        return self._target.left(address, self.incarnation)

    def _give_back(self, future: OngoingCall[Any], error: ActorError) -> None:
        if not future.since or error.code is Code.BUSY:
            future.since = monotonic()
        self.returned.append((future, error))
        self._start_delivery()

    # The thread that finds the actor and delivers what waits

    def _start_delivery(self) -> None:
        if not self._starting and not self._delivering.locked():
            self._starting = True  # no handler of a signal comes between this and the next
            start_new_thread(self._deliver, ())

    def _deliver(self) -> None:
        first = self._delivering.acquire(False)
        self._starting = False
        if not first:
            return
        sent = False
        incarnation = self.incarnation
        try:
            while self._collect():
                sent = self._attempt() or sent
        finally:
            self._delivering.release()
        if self.returned or (self._backlog.ready and self._channel is None):
            self._start_delivery()
        if sent and self._last is not None and (not incarnation or incarnation != self.incarnation):
            self._learn_methods(self._last)

    def _collect(self) -> bool:
        """Bring what came back and what was queued into its order; return whether that is anything."""
        with self._lock:
            if not self._backlog.ready:
                return False
            if self._channel is not None:
                self._last, self._channel = self._channel, None
        back = []
        while self.returned:
            if self.returned[0][1].code is not Code.APPLICATION:
                self._wait_for_others()
            future, error = self.returned.popleft()
            future.sent = future.channel = None
            if future.cancelled_by:  # while it was on neither its server nor its way there
                future.give_up(cancelled)
            future.arrived = False
            future.attempts += 1
            future.call.attempt = future.attempts
            if error.code is not Code.APPLICATION:  # which its server is not to blame for
                self._note(future, error)
            back.append(future)
        with self._lock:
            self._backlog.merge(back)
        for future in self._backlog.write_arguments():
            with self._lock:
                self._backlog.bytes += future.size
        return self._backlog.ready

    def _wait_for_others(self) -> None:
        """Let what was sent be answered, or it would be overtaken by what came back before it.

        A call that ran and is to run again was overtaken already.
        """
        pause = _TURN
        while self._last is not None and self._last.has_calls_of(self):
            sleep(pause)
            pause = min(_LONGEST_TURN, 2 * pause)

    def _others_come_back(self, channel: Channel) -> bool:
        """Wait for earlier calls that never left, over a connection to another server that broke.

        What is queued would overtake them. Return whether any have come back.
        """
        last, pause = self._last, _TURN
        while (
            last is not None and last is not channel and not self.returned and last.has_unsent_calls_of(self)
        ):
            sleep(pause)
            pause = min(_LONGEST_TURN, 2 * pause)
        return bool(self.returned)

    def _note(self, future: OngoingCall[Any], error: ActorError) -> None:
        """Note which endpoint failed a call, and why; end a call whose actor its server does not know."""
        last = self._last
        unknown = error.code is Code.UNKNOWN_ACTOR and last is not None
        if unknown and last is not None and not self._target.leaves(last.address, self.incarnation):
            future.fail(error)
            return
        endpoint = Endpoint(self.name, last.address, self.incarnation) if last is not None else None
        self._target.note(error, endpoint)

    def _attempt(self) -> bool:
        """Send what is queued, if the actor is found; else wait a little. Return whether it was found."""
        target = self._target
        endpoint = target.try_find()
        death = target.dead() if endpoint is None else None
        if death is not None:
            self._fail_all(death)
            return False
        if endpoint is None or target.is_failed(endpoint):
            self._fail_overdue(endpoint)
            target.back_off()
            endpoint = target.try_find()
        if endpoint is None:
            return False
        if not self._complete and not self._complete_settings(endpoint):
            return False
        target.forgive()
        channel = channels().at(endpoint.address, self.settings)
        if self._others_come_back(channel):
            return False
        try:
            channel.connect(self.settings.connect_timeout)
        except UnavailableError as err:
            target.fail(endpoint, err)
            return False
        except ActorError as err:
            self._fail_all(err)
            return False
        if self._others_come_back(channel):  # of a connection that broke meanwhile
            return False
        self._send(endpoint, channel)
        return True

    def _complete_settings(self, endpoint: Endpoint) -> bool:
        """Complete the settings with what this process shows to the actor; return whether they are."""
        try:
            settings = self.directory.settings(self.settings)
        except ClusterError as err:
            unknown = f"this program did not get the identity of namespace {self.directory.namespace}: {err}"
            if isinstance(err, ClusterUnavailableError):
                self._target.fail(endpoint, UnavailableError(unknown))
            else:
                self._fail_all(DeniedError(unknown))
            return False
        self.settings, self._complete = settings or self.settings, True
        return True

    def _send(self, endpoint: Endpoint, channel: Channel) -> None:
        backlog = self._backlog
        with self._lock:
            self.incarnation = endpoint.incarnation
            while backlog.calls:
                future = backlog.calls[0]
                if future.unwritten:
                    break
                future.call.incarnation = self.incarnation
                if not future.done() and not channel.send(future, True):
                    break
                backlog.drop_first()
            else:
                self._channel = channel
            self._last = channel
        channel.flush()

    def _fail_overdue(self, endpoint: Endpoint | None) -> None:
        now, error = monotonic(), self._target.error
        if endpoint is None and error is None:
            error = self._target.unknown()
        for future in list(self._backlog.calls):
            if future.unwritten:
                return  # it and later ones do not wait for the actor
            if now - future.since >= future.options.resolve_timeout and error is not None:
                future.fail(_renewed(error))

    def _fail_all(self, error: ActorError) -> None:
        with self._lock:
            calls = self._backlog.clear()
        for future in calls:
            died = future.may_have_run and isinstance(error, ActorDeadError)
            future.fail(ActorDiedError.of(error.message) if died else _renewed(error))

    def _learn_methods(self, channel: Channel) -> None:
        """Ask which methods may run twice, for the time when the connection is lost."""
        try:
            methods = channel.connect(0).list_methods(self.name, _METHODS).methods
        except ActorError:
            return
        self.idempotent = frozenset(method.name for method in methods if method.idempotent)
        self.retries = {method.name: method.retries for method in methods if method.retries}


def _renewed(error: ActorError) -> ActorError:
    """Return an error of its own for each call: it names the call's method."""
    return type(error)(error.message, near=error.near)
