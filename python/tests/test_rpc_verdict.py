"""A call in flight when its actor dies for good: it may have run, and the actor is dead."""

from __future__ import annotations

import pickle
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from fray._pb import actor_pb2
from fray.rpc._calling import verdict
from fray.rpc._calling.resolve import Fate
from fray.rpc._calling.verdict import Verdicts
from fray.rpc.errors import (
    ActorDeadError,
    ActorDiedError,
    ActorError,
    CancelledError,
    Code,
    MaybeExecutedError,
    of_wire,
)

PATIENCE = 300.0
DEATH = 'actor "counter" was deleted: job counter-1 was stopped by user ann'


class Lost:
    """A call that may have run."""

    def __init__(self, incarnation: str = "a") -> None:
        self.call = SimpleNamespace(incarnation=incarnation)
        self.channel: object = self
        self.cancelled_by = False
        self.error: ActorError | None = None
        self.over = threading.Event()

    def done(self) -> bool:
        return self.over.is_set()

    def fail(self, error: ActorError) -> None:
        self.error = error
        self.over.set()

    def give_up(self, error: Any) -> None:
        self.fail(error(True))

    def fail_maybe(self) -> None:
        self.fail(MaybeExecutedError("it may have run", ran=True))


class Fates:
    """What is known of an actor, one after the other; the last one stays."""

    def __init__(self, *fates: Fate, learns: bool = True) -> None:
        self.fates, self.learns_fate = list(fates), learns
        self.asked: list[str] = []

    def verdict(self, incarnation: str) -> Fate:
        self.asked.append(incarnation)
        return self.fates.pop(0) if len(self.fates) > 1 else self.fates[0]

    def wait(self, timeout: float) -> None:
        """Do not wait."""


def ended(fates: Any, *calls: Any, lives: bool = False) -> list[type]:
    verdicts = Verdicts(fates)
    for call in calls:
        verdicts.await_verdict(call, lives)
    assert all(call.over.wait(PATIENCE) for call in calls)
    return [type(call.error) for call in calls]


def test_dead_for_good() -> None:
    one, other = Lost(), Lost()
    assert ended(Fates(Fate(DEATH)), one, other) == [ActorDiedError, ActorDiedError]
    assert one.error is not other.error, "each names the call's method"
    assert one.error is not None
    assert str(one.error) == f"{DEATH}; the call may have run"


def test_dead_for_good_once_that_is_decided() -> None:
    fates = Fates(Fate(undecided=True), Fate(undecided=True), Fate(DEATH))
    assert ended(fates, Lost()) == [ActorDiedError]
    assert fates.asked == ["a", "a", "a"]


@pytest.mark.parametrize("fates", [(Fate(),), (Fate(undecided=True), Fate())])
def test_it_may_come_back(fates: tuple[Fate, ...]) -> None:
    assert ended(Fates(*fates), Lost()) == [MaybeExecutedError]


def test_it_is_never_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "_LONGEST", 0.0)
    assert ended(Fates(Fate(undecided=True)), Lost()) == [MaybeExecutedError]


@pytest.mark.parametrize(("learns", "lives"), [(False, False), (True, True)])
def test_nothing_will_be_known(learns: bool, lives: bool) -> None:
    fates = Fates(Fate(DEATH), learns=learns)
    assert ended(fates, Lost(), lives=lives) == [MaybeExecutedError]
    assert not fates.asked


def test_a_cluster_that_was_closed() -> None:
    class Closed(Fates):
        def verdict(self, incarnation: str) -> Fate:
            raise ValueError(f"{incarnation}: the channel is closed")

    assert ended(Closed(), Lost(), Lost("b")) == [MaybeExecutedError, MaybeExecutedError]


def test_a_question_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "_LONGEST", 0.01)
    answered = threading.Event()

    class Slow(Fates):
        def verdict(self, incarnation: str) -> Fate:
            assert answered.wait(PATIENCE)
            return super().verdict(incarnation)

    fates = Slow(Fate(DEATH))
    try:
        assert ended(fates, Lost(), Lost()) == [MaybeExecutedError, MaybeExecutedError]
    finally:
        answered.set()


def test_a_call_that_is_cancelled_meanwhile() -> None:
    call = Lost()
    call.cancelled_by = True
    assert ended(Fates(Fate(DEATH)), call) == [CancelledError]
    assert call.channel is None, "its number there may be that of another call by now"


def test_it_is_both_wherever_it_goes() -> None:
    error = ActorDiedError.of(DEATH).at("counter", "add")
    sent = of_wire(actor_pb2.Error.FromString(error.to_wire().SerializeToString()))
    for each in (error, sent, pickle.loads(pickle.dumps(error))):
        assert isinstance(each, ActorDeadError)
        assert isinstance(each, MaybeExecutedError)
        assert (each.code, each.ran, each.message) == (
            Code.MAYBE_EXECUTED,
            True,
            f"{DEATH}; the call may have run",
        )
        assert (each.actor, each.method) == ("counter", "add")
        assert isinstance(each.cause, ActorDeadError)
        assert each.cause.message == DEATH
    assert type(of_wire(MaybeExecutedError("m", ran=True).to_wire())) is MaybeExecutedError
