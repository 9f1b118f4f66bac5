"""How calls are made: options of a client, a handle, a method or one call. Futures and routes obey them."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import Final

from fray.rpc._transport.call_chain import call_deadline
from fray.rpc._transport.retry import Exceptions, names_of
from fray.rpc._transport.settings import Settings as ConnectionSettings
from fray.rpc.codec import Codec

__all__ = ["ConnectionSettings", "RpcOptions"]

MAX_BREAKS: Final = 16
"""How often a call is sent again where it may be why connections break, or servers."""


MAX_WINDOW: Final = 100_000
"""Items that a generator may be ahead at most."""


@dataclass(frozen=True, slots=True)
class RpcOptions:
    """How a method is called. Times are in seconds."""

    timeout: float | None = None
    """From the call to its result; None: as long as it takes, or as the calling method itself has left."""
    retries: int | None = None
    """How often a call is sent again that may have run, as its server was lost, or whose method raised one of
    `retry_exceptions`: one budget for both. None: as the method declares, else never."""
    retry_exceptions: Exceptions | None = None
    """Whether a call runs again after its method raised: True, or for some exceptions their classes or the
    names of these, as ApplicationError.type has them. It takes `retries`. None: as the method declares, else
    never."""
    idempotent: bool = False
    """Whether running twice is as good as once: such a call is sent again when its server is lost."""
    resolve_timeout: float = 60.0
    """How long to wait for an actor that is not there, and to try to reach one."""
    stream_window: int = 0
    """How many items a generator may be ahead of the loop that takes them; 0: 1,000, or 8 MiB of them."""
    codec: Codec = Codec.MSGPACK
    """How arguments and results are written. PICKLE needs `allow_pickle` and an identity on both sides."""

    def __post_init__(self) -> None:
        if self.timeout is not None and self.timeout < 0:
            raise ValueError(f"timeout is {self.timeout}; it must not be negative")
        if self.retries is not None and self.retries < 0:
            raise ValueError(f"retries is {self.retries}; it must not be negative")
        if self.retry_exceptions is not None:  # names, as handles travel to where the classes are not
            object.__setattr__(self, "retry_exceptions", names_of(self.retry_exceptions))
        if not 0 <= self.stream_window <= MAX_WINDOW:
            raise ValueError(f"stream_window is {self.stream_window}; it must be 0 to {MAX_WINDOW}")

    def deadline(self) -> float | None:
        """Return until when a call that is made now must be answered, on time.monotonic."""
        inherited = call_deadline.get()
        if self.timeout is None:
            return inherited
        own = monotonic() + self.timeout
        return own if inherited is None else min(own, inherited)
