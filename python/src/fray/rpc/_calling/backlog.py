"""Calls that wait until their actor is found, in the order in which they were made.

Finding the actor and sending the calls is left to `_calling.route`.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fray.rpc._calling.ongoing import OngoingCall
    from fray.rpc.errors import ActorError

_TURN, _LONGEST_TURN = 0.001, 0.05  # seconds
_MAX_CALLS = 10_000  # that wait before callers that make more wait, too
_MAX_BYTES = 256 << 20  # of their arguments


class Backlog:
    """The waiting calls of a route, whose lock guards all but `returned` and `wait_for_room`."""

    def __init__(self) -> None:
        self.calls: list[OngoingCall[Any]] = []
        self.bytes = 0
        """Of their arguments."""
        self.returned: deque[tuple[OngoingCall[Any], ActorError]] = deque()
        """Calls that were sent and are to be sent again, before all later ones; and why."""

    @property
    def empty(self) -> bool:
        """Whether no call waits."""
        return not self.calls and not self.returned

    @property
    def ready(self) -> bool:
        """Whether the first call can be sent: it waits for no future among its arguments."""
        calls = self.calls
        try:
            return bool(self.returned) or not calls[0].held
        except IndexError:
            return False

    def write_arguments(self) -> list[OngoingCall[Any]]:
        """Encode the arguments of calls up to the first that is held; return those for which that was due."""
        calls = list(self.calls)
        due = list(takewhile(lambda call: not call.held, calls))
        written = [call for call in due if call.unwritten]
        for call in written:
            call.write_arguments()
        for call in calls[calls.index(written[0]) :] if written else ():
            call.since = monotonic()  # it has not waited for its actor before
        return written

    def add(self, future: OngoingCall[Any]) -> None:
        """Add a call that was made after all others."""
        future.since = monotonic()
        self.calls.append(future)
        self.bytes += future.size

    def drop_first(self) -> None:
        """Remove the first call."""
        self.bytes -= self.calls.pop(0).size

    def merge(self, back: list[OngoingCall[Any]]) -> None:
        """Add calls that came back, and remove those that have ended."""
        self.calls = [future for future in back + self.calls if not future.done()]
        self.calls.sort(key=lambda future: future.number)
        self.bytes = sum(future.size for future in self.calls)

    def clear(self) -> list[OngoingCall[Any]]:
        """Remove all calls but the returned ones, and return them."""
        calls, self.calls, self.bytes = self.calls, [], 0
        return calls

    @property
    def crowded(self) -> bool:
        """Whether so many calls wait that callers wait, too."""
        return len(self.calls) > _MAX_CALLS or self.bytes > _MAX_BYTES

    def wait_for_room(self, future: OngoingCall[Any]) -> None:
        """Wait while it is crowded, at most until a call is over."""
        pause = _TURN
        while self.crowded and not future.done():
            if future.deadline is not None:
                pause = min(pause, future.deadline - monotonic())
            if pause <= 0:
                return  # its caller, which waits for it, ends it now
            sleep(pause)
            pause = min(_LONGEST_TURN, 2 * pause)
