"""What can go wrong with a call of an actor's method: one class for each code of the protocol.

The messages and the codes are the same in every language. An exception of the method is text here; what is
made of the exception itself is left to `_transport.raised`.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

if TYPE_CHECKING:
    from fray._pb import actor_pb2


class Code(StrEnum):
    """A closed set of what can go wrong, in the order of the wire's numbers from 1 on."""

    APPLICATION = "application"
    UNKNOWN_ACTOR = "unknown_actor"
    UNKNOWN_METHOD = "unknown_method"
    BAD_ARGUMENTS = "bad_arguments"
    ENCODING = "encoding"
    TOO_LARGE = "too_large"
    STALE = "stale"
    MALFORMED = "malformed"
    VERSION = "version"
    BUSY = "busy"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    STOPPING = "stopping"
    MAYBE_EXECUTED = "maybe_executed"
    DENIED = "denied"
    INTERNAL = "internal"
    UNAVAILABLE = "unavailable"
    ACTOR_DEAD = "actor_dead"

    @property
    def number(self) -> actor_pb2.Code.ValueType:
        """The code as the wire has it."""
        return cast("actor_pb2.Code.ValueType", list(Code).index(self) + 1)


class RemoteTraceback(Exception):  # noqa: N818 as multiprocessing calls it
    """The traceback of what a method raised, as text: the cause of the caller's exception."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f'\n"""\n{self.text.rstrip()}\n"""'


class Packed(NamedTuple):
    """What was sent of an exception beside its text."""

    exception: bytes = b""
    """Pickled."""
    arguments: bytes = b""
    """What one of Python's own was made of."""
    unsent: str = ""
    """Why there is none."""


class ActorError(Exception):
    """A call did not return. The subclass, and its `code`, are the kind of failure.

    Attributes:
        message: The reason as text, without the names of actor and method.
        ran: Whether the method may have begun; where it is False the call had no effect.
        actor: The name of the actor, "" if not known.
        method: The name of the method, "" if not known.
        argument: The path of the invalid value, such as "args[1].lr" or "result[0]"; "" if there is none.
        near: Similar names, for a name that does not exist.
        type: The class of the exception that the method raised, "" if it raised none.
        traceback: Its traceback as text.
        cause: What that exception was raised from.
    """

    code: ClassVar[Code] = Code.INTERNAL
    packed: Packed | None = None

    def __init__(
        self,
        message: str,
        *,
        ran: bool = False,
        actor: str = "",
        method: str = "",
        argument: str = "",
        near: Iterable[str] = (),
        type: str = "",  # noqa: A002 as the protocol calls it
        traceback: str = "",
        cause: ActorError | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.ran, self.actor, self.method = message, ran, actor, method
        self.argument, self.near = argument, tuple(near)
        self.type, self.traceback, self.cause = type, traceback, cause
        if traceback:
            self.__cause__ = RemoteTraceback(traceback)
        elif cause is not None:
            self.__cause__ = cause

    def __str__(self) -> str:
        where = ""
        if self.actor:
            where = f"{self.actor}.{self.method}: " if self.method else f"{self.actor}: "
        argument = f"{self.argument}: " if self.argument else ""
        near = f"; did you mean {', '.join(self.near)}?" if self.near else ""
        return f"{where}{argument}{self.message}{near}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.__class__, self.message, self._fields())

    def _fields(self) -> dict[str, Any]:
        names = ("ran", "actor", "method", "argument", "near", "type", "traceback", "cause")
        return {name: getattr(self, name) for name in names}

    def at(self, actor: str, method: str = "") -> Self:
        """Return the error itself, which names the actor and the method from now on unless it did."""
        self.actor = self.actor or actor
        self.method = self.method or method
        return self

    def to_wire(self) -> actor_pb2.Error:
        """Return the error as it is sent."""
        from fray._pb import actor_pb2

        wire = actor_pb2.Error(
            code=self.code.number,
            message=self.message,
            ran=self.ran,
            actor=self.actor,
            method=self.method,
            argument=self.argument,
            near=self.near,
            type=self.type,
            traceback=self.traceback,
        )
        if self.cause is not None:
            wire.cause.CopyFrom(self.cause.to_wire())
        if self.packed is not None:
            wire.exception, wire.arguments, wire.unsent = self.packed
        return wire


class ApplicationError(ActorError):
    """The method raised: `type`, `message` and `traceback` are of its exception. The actor lives on.

    Where the class of that exception can be had, what the caller gets is of it, too.
    """

    code = Code.APPLICATION
    raised: Exception | None = None
    """The exception of the method, where it can be had: its arguments and attributes are as they were."""


class ActorCreationError(ApplicationError):
    """The actor's constructor raised, so there is no actor."""


class UnknownActorError(ActorError, LookupError):
    """No actor of that name is registered, or served there."""

    code = Code.UNKNOWN_ACTOR


class UnknownMethodError(ActorError):
    """The actor has no such method, or none that may be called from afar."""

    code = Code.UNKNOWN_METHOD


class BadArgumentsError(ActorError, TypeError):
    """The number, names or types of the arguments do not fit the method. It did not run."""

    code = Code.BAD_ARGUMENTS


class EncodingError(ActorError, TypeError):
    """No codec carries an argument, or the result. In the latter case the method ran."""

    code = Code.ENCODING


class TooLargeError(ActorError, ValueError):
    """The arguments or the result are larger than max_message_bytes of one of the two sides."""

    code = Code.TOO_LARGE


class StaleError(ActorError):
    """Another incarnation of the actor is there than was meant."""

    code = Code.STALE


class MalformedError(ActorError):
    """The bytes are not of the protocol."""

    code = Code.MALFORMED


class VersionError(ActorError):
    """The other side speaks another version of the protocol."""

    code = Code.VERSION


class BusyError(ActorError):
    """Too many calls wait at the server."""

    code = Code.BUSY


class SelfCallError(BusyError):
    """A method waits for a call of its own actor, which cannot begin before the method returns."""


class DeadlineError(ActorError, TimeoutError):
    """The time of the call was over before it returned. `ran`: whether it may have begun."""

    code = Code.DEADLINE


class CancelledError(ActorError, concurrent.futures.CancelledError):
    """The call was cancelled. `ran`: whether it may have begun."""

    code = Code.CANCELLED


class StoppingError(ActorError):
    """The server is shutting down, or the actor was unregistered."""

    code = Code.STOPPING


class MaybeExecutedError(ActorError, ConnectionError):
    """The connection broke after the call was sent, and the server that had it is gone: it may have run."""

    code = Code.MAYBE_EXECUTED


class DeniedError(ActorError, PermissionError):
    """The peer is of another namespace, or may not send pickles."""

    code = Code.DENIED


class InternalError(ActorError):
    """The other side failed by a fault of its own, which its log has."""

    code = Code.INTERNAL


class UnavailableError(ActorError, ConnectionError):
    """No server answers there. The method did not run."""

    code = Code.UNAVAILABLE


class ActorDeadError(ActorError):
    """The actor was deleted, or has failed for good. The message has who deleted it, or why it failed.

    `ran`: whether the method may have begun.
    """

    code = Code.ACTOR_DEAD


class ActorDiedError(MaybeExecutedError, ActorDeadError):
    """The actor died for good while it had the call, which may have run: both errors in one.

    Its `code` is that of MaybeExecutedError, and its `cause` the ActorDeadError.
    """

    def __init__(self, message: str, *, cause: ActorError | None = None, **fields: Any) -> None:
        super().__init__(message, cause=cause or ActorDeadError(message), **{**fields, "ran": True})

    @classmethod
    def of(cls, death: str) -> ActorDiedError:
        """Return the error of a call that may have run in an actor, of which the death is known."""
        return cls(f"{death}; the call may have run", cause=ActorDeadError(death))


_CLASSES: tuple[type[ActorError], ...] = (
    ApplicationError,
    UnknownActorError,
    UnknownMethodError,
    BadArgumentsError,
    EncodingError,
    TooLargeError,
    StaleError,
    MalformedError,
    VersionError,
    BusyError,
    DeadlineError,
    CancelledError,
    StoppingError,
    MaybeExecutedError,
    DeniedError,
    InternalError,
    UnavailableError,
    ActorDeadError,
)

_MAX_CAUSES = 32  # of a chain that a peer sends


def of_wire(wire: actor_pb2.Error, depth: int = _MAX_CAUSES, *, pickles: bool = False) -> ActorError:
    """Return the error that a peer sent. Codes that this program does not know become InternalError.

    With `pickles` the exception that it may have is kept, to be unpickled.
    """
    known = 1 <= wire.code <= len(_CLASSES)
    kind = _CLASSES[wire.code - 1] if known else InternalError
    cause = of_wire(wire.cause, depth - 1) if depth > 1 and wire.HasField("cause") else None
    if kind is MaybeExecutedError and isinstance(cause, ActorDeadError):
        kind = ActorDiedError
    error = kind(
        wire.message,
        ran=wire.ran,
        actor=wire.actor,
        method=wire.method,
        argument=wire.argument,
        near=wire.near,
        type=wire.type,
        traceback=wire.traceback,
        cause=cause,
    )
    packed = Packed(wire.exception if pickles else b"", wire.arguments, wire.unsent)
    error.packed = packed if any(packed) else None
    return error


def of_code(code: Code) -> type[ActorError]:
    """Return the class of the errors of a code."""
    return _CLASSES[list(Code).index(code)]


def _rebuild(kind: type[ActorError], message: str, fields: dict[str, Any]) -> ActorError:
    return kind(message, **fields)


def cancelled(ran: bool) -> ActorError:
    """Return the error of a call that its caller cancelled; `ran`: it may have."""
    when = ": it may have run" if ran else " before it was sent"
    return CancelledError(f"the call was cancelled{when}", ran=ran)
