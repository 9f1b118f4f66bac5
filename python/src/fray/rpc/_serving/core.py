"""What a server does with calls, by whatever protocol they came: which actors there are, which calls wait.

Connections are left to `_serving.session` and `_serving.grpc`, and the names of actors in the cluster to
`server`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from fray._latch import Latch
from fray._pb import actor_pb2
from fray.rpc._serving.actor import Actor
from fray.rpc._serving.call import STREAMS, Absence, ServerCall
from fray.rpc._serving.event_loop import EventLoop
from fray.rpc._serving.ledger import Ledger
from fray.rpc._serving.metrics import Exposition
from fray.rpc._serving.reply import Answerer, Reply, error_reply, payload_size
from fray.rpc._serving.stream import ServerStream, StreamSender
from fray.rpc._transport.background import deadlines
from fray.rpc._transport.failure import clip, near
from fray.rpc._transport.memory import DEFAULT_MEMORY, Memory, Reservation
from fray.rpc._transport.names import random_name
from fray.rpc._transport.transfer import PARTS_FROM
from fray.rpc._transport.wire import DEFAULT_MAX_MESSAGE, payload_of
from fray.rpc.errors import (
    ActorDiedError,
    ActorError,
    BadArgumentsError,
    BusyError,
    DeniedError,
    MaybeExecutedError,
    StaleError,
    StoppingError,
    UnknownActorError,
    UnknownMethodError,
)

if TYPE_CHECKING:
    from fray.rpc._serving.mailbox import Mailbox
    from fray.rpc.codec import ActorRef
    from fray.rpc.context import Surroundings

KILL: Final = "__fray_kill__"
"""The method that no object has, by which clients end the processes of actors that they created."""
MAX_PENDING: Final = 10_000
"""Calls of one connection that have not been answered."""
_MAX_WAITING: Final = 1 << 30  # bytes of large arguments of calls that have not been answered
_LARGE: Final = 64 << 10


@dataclass(frozen=True)
class Limits:
    """How a server treats its peers. Times are in seconds."""

    namespace: str = ""
    max_message_bytes: int = DEFAULT_MAX_MESSAGE
    transfer_memory: int = DEFAULT_MEMORY
    """Bytes of arguments that come in parts, and of results that are sent so, each."""
    allow_pickle: bool = False
    """Of peers that have proven to be of the namespace."""
    created: bool = False
    """The actors are of create_actor: pickle is the fallback between them and peers as above."""
    secure: bool = False
    """TLS proves it."""
    secret: bytes = b""
    """What proves it without, see `_transport.proof`."""
    since: int = field(default_factory=time.monotonic_ns)
    keepalive: float = 10.0
    patience: float = 20.0
    handshake: float = 10.0
    """How long a peer may take to report its name."""
    peer: str = field(default_factory=random_name)
    """The server itself, as Handshake.peer."""

    @property
    def stall(self) -> float:
        """How long a transfer may get no further."""
        return self.keepalive + self.patience


class Core:
    """The actors of a server, and their calls."""

    def __init__(self, limits: Limits, surroundings: Surroundings) -> None:
        self.limits, self.surroundings = limits, surroundings
        self.ledger: Ledger[ServerCall] = Ledger()
        self.room = Memory(limits.transfer_memory)
        """For arguments that come in parts."""
        self.kept = Memory(limits.transfer_memory)
        """For results that are sent in parts."""
        self._sending = 0  # of these
        self.loop = EventLoop("fray-actor-loop")
        self.sender = StreamSender("fray-actor-streams")
        self.draining = False
        self.killable = False
        """A call of the method KILL ends the process."""
        self._actors: dict[str, Actor] = {}
        self._lock = threading.Lock()
        self._active: set[ServerCall] = set()
        self._idle = Latch()
        self._waiting = 0  # bytes
        self._waiting_lock = threading.Lock()
        self._unrouted: Counter[int] = Counter()  # errors of calls that reached no method

    # Actors.

    def add(self, actor: Actor) -> bool:
        """Let an actor be called; False: the name is taken."""
        with self._lock:
            if actor.name in self._actors:
                return False
            self._actors = {**self._actors, actor.name: actor}
            return True

    def remove(self, name: str, lost: bool = False, death: str = "") -> Actor | None:
        """Remove an actor, and reject calls that wait for it; `lost`: give up those that run, too.

        `death`: why it does not come back, if so.
        """
        with self._lock:
            actor = self._actors.get(name)
            self._actors = {n: a for n, a in self._actors.items() if n != name}
        if actor is None:
            return None
        actor.gone = True
        for call in self._calls():
            if call.actor is actor:
                call.drop(StoppingError("the actor was unregistered"))
                if lost:
                    call.abandon(
                        ActorDiedError.of(death)
                        if death
                        else MaybeExecutedError("the actor failed while the call ran", ran=True)
                    )
        return actor

    def mailbox_of(self, value: object) -> Mailbox | None:
        """Return the mailbox of an object that has a name already."""
        return next((a.mailbox for a in self._actors.values() if a.value is value), None)

    @property
    def objects(self) -> int:
        """How many objects have names."""
        return len({id(actor.value) for actor in self._actors.values()})

    @property
    def actors(self) -> dict[str, Actor]:
        """By name."""
        return self._actors

    # Calls.

    def route(self, call: ServerCall, busy: bool = False) -> bool:
        """Bring a new call to its actor, or reject it; return whether its thread receives afterwards."""
        message = call.message
        assert message is not None
        actor = self._actors.get(message.actor)
        if message.method == KILL and self.killable and actor is not None:
            os.kill(os.getpid(), signal.SIGKILL)  # what runs is given up: no method is asked
        try:
            if actor is None or self.draining or busy:
                raise self._rejection(message.actor, actor, busy)
            if message.incarnation and message.incarnation != actor.incarnation:
                raise StaleError("another incarnation is here")
            route = actor.routes.get(message.method)
            if route is None:
                actor.find(message.method)
                raise UnknownMethodError(f'no method "{clip(message.method)}"')
            if route[0].streams and not call.takes_stream:
                raise BadArgumentsError(STREAMS)
            if message.codec == actor_pb2.CODEC_PICKLE and not call.pickles:
                raise DeniedError(
                    "pickle is refused: both sides must allow it and show the namespace's identity"
                )
            if len(message.args) > _LARGE or call.buffers:
                self._reserve(call, message)
        except ActorError as err:
            self._reject(call, message, actor, err)
            return False
        call.actor = actor
        call.method, queue = route
        call.queue = queue
        self._active.add(call)
        if self.draining:  # since just now, so `drain` may not wait for it
            call.drop(StoppingError("the server is shutting down"))
            return False
        if call.caller is not None and call.seq and call.caller.arguments.holds(call):
            return False
        return self.put(call)

    def put(self, call: ServerCall) -> bool:
        """Let a call wait whose arguments are here; return whether its thread receives afterwards."""
        assert call.queue is not None
        try:
            return call.queue.put(call)
        except RuntimeError as err:  # no thread can be started
            call.drop(BusyError(str(err)))
            return False

    def _rejection(self, name: str, actor: Actor | None, busy: bool) -> ActorError:
        if self.draining:
            return StoppingError("the server is shutting down")
        if actor is None:
            return UnknownActorError(f'no actor "{clip(name)}" is here', near=near(name, self._actors))
        assert busy
        return BusyError(f"{MAX_PENDING} calls of this connection wait")

    def _reserve(self, call: ServerCall, message: actor_pb2.Call) -> None:
        size = len(payload_of(call.buffers, message.args)) + sum(b.nbytes for b in call.buffers)
        with self._waiting_lock:
            if self._waiting and self._waiting + size > _MAX_WAITING:
                raise BusyError(f"{self._waiting >> 20} MiB of arguments wait")
            self._waiting += size
        call.size = size

    def _reject(
        self, call: ServerCall, message: actor_pb2.Call, actor: Actor | None, err: ActorError
    ) -> None:
        self._unrouted[err.code.number] += 1
        incarnation = actor.incarnation if actor else ""
        reply = error_reply(call.seq, incarnation, err.at(clip(message.actor), clip(message.method)))
        self._deliver(call, reply, later=False)

    def answered(self, call: ServerCall, reply: Reply, later: bool) -> None:
        """Take a reply to its caller."""
        self._deliver(call, reply, later)
        if call.size:
            with self._waiting_lock:
                self._waiting -= call.size
        self._active.discard(call)
        self._check_idle()

    def _check_idle(self) -> None:
        if self.draining and not self._active and not self._sending:
            self._idle.set()

    def sending(self, change: int) -> None:
        """Note how many more results are on their way in parts."""
        with self._waiting_lock:
            self._sending += change
        self._check_idle()

    def _deliver(self, call: ServerCall, reply: Reply, later: bool) -> None:
        call.message, call.buffers = None, ()
        if call.room is not None:
            call.room.release()
        if not call.complete and call.session is not None:
            call.session.dropped(call)
        stream, kept = call.stream, 0
        if stream is not None:
            kept = stream.seal(reply[0])
        if call.caller is None or not call.seq:
            to = call.to
        else:
            to = self.ledger.finish(call.caller, call, reply, kept, self._keep(call, reply))
        if stream is not None:
            stream.finish(reply)
        elif to is not None:
            to.answer(reply[0], reply[1], later)

    def _keep(self, call: ServerCall, reply: Reply) -> Reservation | None:
        """Wait until there is room to keep a large result.

        That is until others are with their callers, or these have had long enough.
        """
        size = payload_size(reply)
        if size <= PARTS_FROM or not getattr(call.to, "takes_parts", False):
            return None
        there = threading.Lock()
        there.acquire()
        room = self.kept.reserve(size, there.release)
        wait = self.limits.stall
        while not there.acquire(timeout=wait) and self.ledger.evict():
            wait = 0
        return room

    def opened(self, call: ServerCall, stream: ServerStream) -> Answerer | None:
        """Note the stream of a call that runs; return what it goes to."""
        to = self.ledger.opened(call, stream)
        if getattr(to, "left", False) and call.caller is not None:
            self.expire(call, to)
        return to

    def expire(self, call: ServerCall, to: Answerer | None) -> None:
        """End a stream unless its caller comes back: it holds a place of its actor's concurrency."""
        away = self.limits.keepalive
        call.absence = Absence(call, to, f"the stream was ended as its caller was away for over {away:g} s")
        deadlines().add(time.monotonic() + away, call.absence)

    def on_loop(self, function: Callable[[], object]) -> None:
        """Call a function on the event loop."""
        self.loop.submit(function)

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await a coroutine on the event loop, and wait for it."""
        return self.loop.run(coroutine)

    def on_reference(self, reference: ActorRef) -> Any:
        """Make a handle of a reference among the arguments."""
        from fray.rpc.resolver import handle_of

        return handle_of(*reference, near=self.surroundings.resolver)

    def waiting(self, server: str, caller: str, seq: int) -> ServerCall | None:
        """Return a call that waits here, if `server` is this one; both are named as by Handshake.peer."""
        if server != self.limits.peer:
            return None
        mine = (call for call in self._calls() if call.caller is not None and call.caller.peer == caller)
        return next((call for call in mine if call.seq == seq and call.waits), None)

    # Lists and metrics.

    def list_methods(self, request: actor_pb2.ListMethodsRequest) -> actor_pb2.ListMethodsResponse:
        """Return what can be called of an actor, or in `error` that it is not here."""
        actor = self._actors.get(request.actor)
        if actor is None:
            err = UnknownActorError(
                f'no actor "{clip(request.actor)}" is here',
                actor=clip(request.actor),
                near=near(request.actor, self._actors),
            )
            return actor_pb2.ListMethodsResponse(id=request.id, error=err.to_wire())
        return actor_pb2.ListMethodsResponse(
            id=request.id, methods=actor.methods(), incarnation=actor.incarnation
        )

    def list_actors(self, request: actor_pb2.ListActorsRequest) -> actor_pb2.ListActorsResponse:
        """Return the actors whose names begin so, by name."""
        pending = Counter(call.actor.name for call in self._calls())
        found = [
            actor.description(pending[name])
            for name, actor in sorted(self._actors.items())
            if name.startswith(request.prefix)
        ]
        return actor_pb2.ListActorsResponse(id=request.id, actors=found)

    def metrics(self, connections: int) -> str:
        """Return what Prometheus reads."""
        out, actors = Exposition(), self._actors
        counted = ((a.name, m, s) for a in actors.values() for m, s in a.stats.items())
        out.methods(counted, self._unrouted.copy())
        pending = Counter(call.actor.name for call in self._calls())
        out.family("fray_actor_calls_pending", "gauge", "Calls that wait or run.")
        for name in actors:
            out.sample("fray_actor_calls_pending", pending[name], actor=name)
        out.family("fray_actor_connections", "gauge", "Connections of clients that speak frames.")
        out.sample("fray_actor_connections", connections)
        text = "Replies that their callers have not acknowledged."
        out.family("fray_actor_kept_replies_bytes", "gauge", text)
        out.sample("fray_actor_kept_replies_bytes", self.ledger.kept_bytes)
        return out.text()

    # The end.

    def drain(self, seconds: float) -> None:
        """Reject new calls, and wait until those that are here are answered; then give up on them."""
        self.draining = True
        for call in self._calls():
            if not call.complete:
                call.drop(StoppingError("the server is shutting down"))
        if self._active or self._sending:
            self._idle.wait(seconds)
        for call in self._calls():
            call.abandon()

    def stop(self, seconds: float) -> None:
        """End the threads of the actors, as far as they end in time."""
        until = time.monotonic() + seconds
        mailboxes = {id(a.mailbox): a.mailbox for a in self._actors.values()}.values()
        for mailbox in mailboxes:
            mailbox.stop()
        for mailbox in mailboxes:
            mailbox.join(max(0.0, until - time.monotonic()))
        self.sender.stop(max(0.1, until - time.monotonic()))
        self.loop.stop(max(0.1, until - time.monotonic()))

    def _calls(self) -> list[ServerCall]:
        return list(self._active.copy())
