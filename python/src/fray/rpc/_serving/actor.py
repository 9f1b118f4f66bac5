"""An object under a name, as a server has it: its methods, its mailbox and its counts.

Which actors there are, and which calls reach them, is left to `_serving.core`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from fray._pb import actor_pb2
from fray.rpc._serving.metrics import MethodStats
from fray.rpc._serving.output import Reports, in_task
from fray.rpc._transport.call_chain import here
from fray.rpc.errors import Code

if TYPE_CHECKING:
    from fray.rpc._serving.call import ServerCall
    from fray.rpc._serving.mailbox import Mailbox
    from fray.rpc._serving.methods import Method, MethodTable
    from fray.rpc._serving.reply import Answerer, Reply
    from fray.rpc._serving.stream import ServerStream
    from fray.rpc.codec import ActorRef
    from fray.rpc.context import Surroundings


class ActorHost(Protocol):
    """The server of an actor, as the actor uses it."""

    surroundings: Surroundings

    def answered(self, call: ServerCall, reply: Reply, later: bool) -> None:
        """Take a reply to its caller."""
        ...

    def opened(self, call: ServerCall, stream: ServerStream) -> Answerer | None:
        """Note the stream of a call that runs; return what it goes to."""
        ...

    def on_loop(self, function: Callable[[], object]) -> None:
        """Call a function on the event loop."""
        ...

    def run_coroutine(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await a coroutine on the event loop, and wait for it."""
        ...

    def on_reference(self, reference: ActorRef) -> Any:
        """Make a handle of a reference among the arguments."""
        ...

    def waiting(self, server: str, caller: str, seq: int) -> ServerCall | None:
        """Return a call that waits here, if `server` is this one; both are named as by Handshake.peer."""
        ...


@dataclass(frozen=True)
class Named:
    """An object, its name and what it is registered with."""

    name: str
    incarnation: str
    value: Any
    table: MethodTable
    mailbox: Mailbox


class Actor:
    """One incarnation of an object under a name."""

    def __init__(self, named: Named, host: ActorHost) -> None:
        self.name, self.incarnation, self.value = named.name, named.incarnation, named.value
        self.table, self.mailbox = named.table, named.mailbox
        self.tag = named.mailbox.name
        """The first name of the object, which its lines of output have."""
        self._reports = Reports() if in_task() else None
        self.gone = False
        """It was unregistered: nothing begins any more."""
        self.surroundings = host.surroundings
        self.on_reference, self.run_coroutine = host.on_reference, host.run_coroutine
        self.waiting = host.waiting
        self._host = host
        self.routes = {m.name: (m, self.mailbox.queue(m)) for m in self.table}
        """By name: each method and where its calls wait."""
        self.stats: Mapping[str, MethodStats] = {m.name: MethodStats() for m in self.table}

    def find(self, name: str) -> Method:
        """Return a method. Raises UnknownMethodError."""
        return self.table.find(name)

    def slot(self, method: str) -> object:
        """Return what calls of a method take turns for, see Mailbox.slot; None also without that method."""
        route = self.routes.get(method)
        return None if route is None else self.mailbox.slot(route[0])

    def answered(self, call: ServerCall, reply: Reply, later: bool) -> None:
        """Count a call, and take the reply to its caller."""
        message = reply[0]
        code = message.error.code if message.HasField("error") else 0
        self.stats[call.method.name].add(monotonic() - call.arrived, code)
        if code == Code.APPLICATION.number and self._reports is not None:
            self._report(call, message.error.traceback)
        self._host.answered(call, reply, later)

    def _report(self, call: ServerCall, traceback: str) -> None:
        assert self._reports is not None
        before, here.call = here.call, call  # for the name in its lines
        try:
            self._reports.raised(self.name, call.method.name, traceback)
        finally:
            here.call = before

    def opened(self, call: ServerCall, stream: ServerStream) -> Answerer | None:
        """Note the stream of a call that runs; return what it goes to."""
        return self._host.opened(call, stream)

    def on_loop(self, function: Callable[..., object], *args: Any) -> None:
        """Call a function on the event loop."""
        self._host.on_loop(lambda: function(*args))

    def description(self, pending: int) -> actor_pb2.Actor:
        """Return the actor as ListActors reports it."""
        return actor_pb2.Actor(
            name=self.name,
            incarnation=self.incarnation,
            **{"class": self.table.class_name},
            pending=pending,
            calls=sum(s.calls for s in self.stats.values()),
            errors=sum(s.failed for s in self.stats.values()),
        )

    def methods(self) -> list[actor_pb2.Method]:
        """Return the methods as ListMethods reports them, by name."""
        return [
            actor_pb2.Method(
                name=m.name,
                signature=m.text,
                doc=m.doc,
                idempotent=m.marks.idempotent,
                concurrency_group=m.marks.concurrency_group,
                params=m.params,
                retries=m.marks.retries,
                retry_exceptions=sorted(m.marks.retry_exceptions),
                streams=m.streams,
            )
            for m in sorted(self.table, key=lambda m: m.name)
        ]
