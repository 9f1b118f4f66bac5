"""What the codecs share: their names, limits, errors and the actor reference.

Writing and reading values is left to the modules of the codecs.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

OUT_OF_BAND = 8 << 10
"""Bytes and the data of arrays of at least this many bytes travel beside the message, in buffers."""

MAX_DEPTH = 100
"""How deep lists and maps may nest in one value."""

# What decoding finds wrong; the same text as in Go.
NOT_MSGPACK = "the bytes are no msgpack value"
NOT_JSON = "the bytes are no JSON value"
TRAILING = "bytes follow the value"
NOT_ARGS = "the bytes are no arguments: not an array of an array and a map with names"
READ_TOO_DEEP = "nested deeper than 100 levels"
BAD_KEY = "a map key is neither a string nor an int"
BAD_TEXT = "a string is no valid UTF-8"
BAD_TIME = "a time is malformed, or outside of the years 1 to 9999"
BAD_ARRAY = "an array is malformed"
BAD_ACTOR = "an actor reference is malformed"
BAD_BUFFER = "a reference to a buffer is malformed"
BAD_NUMBER = "a number is out of range: an int has to be within -2^63 to 2^64-1, and a float finite"

Buffer = bytes | bytearray | memoryview
Buffers = Sequence[Buffer]


def with_article(name: str) -> str:
    """Return the name of a type behind "a" or "an"; one with a U is more often a UUID or a User."""
    return f"an {name}" if name[0] in "aeioAEIO" else f"a {name}"


class Codec(enum.IntEnum):
    """How arguments and results are written. The numbers are those of the wire."""

    MSGPACK = 1
    JSON = 2
    PICKLE = 3
    """Between Python peers that trust each other."""


class CodecError(Exception):
    """A value cannot be carried, or bytes are no value.

    Attributes:
        path: the value's, such as "args[1].lr", "kwargs.x[3]" or "result[0]"; "" if the bytes as a whole
            are bad.
        problem: what is wrong with it and what to do.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def under(self, step: str) -> CodecError:
        """Add a step in front of the path, and return the error itself."""
        self.path = step + self.path
        self.args = (self.path, self.problem)
        return self

    def __str__(self) -> str:
        """Return the problem, after the path if there is one."""
        return f"{self.path}: {self.problem}" if self.path else self.problem


class CodecTooLargeError(CodecError):
    """Values would take more memory than the reader allows. None of them was made.

    Attributes:
        limit: How much is allowed, in bytes.
    """

    def __init__(self, limit: int) -> None:
        size = f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"
        super().__init__(
            "",
            f"the values would take more than {size} of memory (max_message_bytes of the receiver); "
            "send arrays or bytes instead of many small values, or raise max_message_bytes there",
        )
        self.limit = limit


class PickleRefusedError(CodecError):
    """Pickle arrived where it is not allowed. Nothing of it was read."""


class ActorRef(NamedTuple):
    """A reference to an actor: what a handle is, on its way.

    A handle is encoded as what its method `__fray_actor__()` returns.
    """

    name: str
    namespace: str
    url: str
    """Where to resolve it; "" where the receiver resolves names itself."""
    member: str = ""
    """Which of several actors of the name: "job/task", or a machine. "": whichever the name stands for. It is
    carried only where it is not ""."""

    def __fray_actor__(self) -> tuple[str, str, str, str]:
        """Return the reference itself, so that it is encoded as one."""
        return self


OnActor = Callable[[ActorRef], Any]
"""Makes what the receiver gets of a reference; a handle, for instance."""

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_]+\Z")


def key_step(key: object) -> str:
    """Return the step of a path that leads to a map's value: ".lr", `["two words"]`, "[3]"."""
    if not isinstance(key, str):
        return f"[{key}]"
    return f".{key}" if _PLAIN_KEY.match(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def index_step(index: int) -> str:
    """Return the step of a path that leads to a list's element."""
    return f"[{index}]"
