"""What a server keeps for callers, and for how long."""

from __future__ import annotations

from collections.abc import Sequence

from fray._pb import actor_pb2
from fray.rpc._serving.ledger import CALLER_LASTS, REPLIES_LAST, Caller, Entry, Ledger, Verdict
from fray.rpc._transport.wire import Buffer


class _Discard:
    takes_streams = False

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:
        """Take a reply."""


class _Clock:
    """A time that tests set, and what is to happen then."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Ledger[Entry]]] = []

    def later(self, when: float, ledger: Ledger[Entry]) -> None:
        self._due.append((when, ledger))

    def sleep(self, seconds: float) -> None:
        end = self.now + seconds
        while due := [each for each in self._due if each[0] <= end]:
            first = min(due, key=lambda each: each[0])
            self._due.remove(first)
            self.now = first[0]
            first[1].expire()
        self.now = end

    @property
    def idle(self) -> bool:
        return not self._due


def _begin(ledger: Ledger[Entry], caller: Caller[Entry], seq: int) -> tuple[Verdict, Entry]:
    return ledger.begin(caller, Entry(seq, 0, _Discard()), 0)


def test_replies_of_callers_that_left_are_freed_within_a_minute() -> None:
    clock = _Clock()
    ledger: Ledger[Entry] = Ledger(clock=lambda: clock.now, later=clock.later)
    caller, again = ledger.open("a"), ledger.open("a")
    _, answered = _begin(ledger, caller, 7)
    _, running = _begin(ledger, caller, 8)
    ledger.finish(caller, answered, (actor_pb2.Reply(seq=7, result=b"x"), ()))
    ledger.close(caller)
    clock.sleep(3600)
    assert ledger.kept_bytes, "freed though the caller has a connection"
    ledger.close(again)
    ledger.close(ledger.open("never calls"))
    clock.sleep(REPLIES_LAST - 1)
    assert ledger.open("a") is caller
    assert ledger.kept_bytes, "freed though the caller came back in time"
    ledger.close(caller)
    clock.sleep(60)
    assert not ledger.kept_bytes
    assert list(caller.calls) == [8], "a call that runs is known"
    ledger.finish(caller, running, (actor_pb2.Reply(seq=8, result=b"x"), ()))
    assert not ledger.kept_bytes
    assert not caller.calls
    assert clock.idle, "a timer for no caller"
    caller = ledger.open("a")
    verdicts = [_begin(ledger, caller, seq)[0] for seq in (7, 8, 9)]
    assert verdicts == [Verdict.LOST, Verdict.LOST, Verdict.NEW], "a call would run again"


def test_callers_are_forgotten_after_a_day() -> None:
    clock = _Clock()
    ledger: Ledger[Entry] = Ledger(clock=lambda: clock.now, later=clock.later)
    caller = ledger.open("a")
    _begin(ledger, caller, 1)
    ledger.close(caller)
    clock.sleep(CALLER_LASTS)
    ledger.open("b")
    assert ledger.open("a") is not caller
