"""Which thread receives on a connection: one that waits for an answer, where that saves time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from actors import PATIENCE
from fray.cluster import FixedResolver
from fray.rpc._transport.receive_turn import ReceiveTurn
from fray.rpc.errors import DeadlineError
from receiving import Served, receivers
from waiting import ended, eventually


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.close()


# The turn


@pytest.fixture
def on_owner() -> Iterator[Callable[..., None]]:
    """Have the owner's thread do something."""
    with ThreadPoolExecutor(1) as owner:
        yield lambda what, *args: owner.submit(what, *args).result(PATIENCE)


def test_one_receives_at_a_time(on_owner: Callable[..., None]) -> None:
    turn = ReceiveTurn()
    on_owner(turn.begin)
    assert not turn.borrow(), "the owner receives"
    on_owner(turn.lend)
    on_owner(lambda: asserted(turn.borrow()))
    assert not turn.borrow(), "a borrower does"
    on_owner(turn.give_back)
    on_owner(turn.take_back, lambda: True)
    assert not turn.borrow(), "the owner does again"


def asserted(what: bool) -> None:
    assert what


@pytest.mark.parametrize("recalled", [True, False], ids=["recalled", "by itself"])
def test_the_owner_takes_its_turn_back(recalled: bool) -> None:
    turn, came = ReceiveTurn(), [False]
    lent, borrowed, ends = threading.Event(), threading.Event(), threading.Event()

    def owns() -> None:
        turn.begin()
        turn.lend()
        lent.set()
        assert borrowed.wait(PATIENCE)
        turn.take_back(lambda: False)
        came[0] = True
        assert ends.wait(PATIENCE)

    owner = threading.Thread(target=owns)
    owner.start()
    assert lent.wait(PATIENCE)
    assert turn.borrow()
    borrowed.set()
    turn.give_back()
    if recalled:
        turn.recall()
    eventually(lambda: came[0], PATIENCE)
    assert not turn.borrow()
    ends.set()
    ended(owner)


def test_the_failure_of_a_borrower_is_the_owners(on_owner: Callable[..., None]) -> None:
    turn = ReceiveTurn()
    on_owner(turn.begin)
    on_owner(turn.lend)
    assert turn.borrow()
    turn.failure = EOFError()
    turn.give_back()
    assert not turn.borrow(), "nothing can be received any more"
    with pytest.raises(EOFError):
        on_owner(turn.take_back, lambda: False)


def test_to_give_back_again_does_no_harm(on_owner: Callable[..., None]) -> None:
    turn = ReceiveTurn()
    assert turn.borrow()
    turn.give_back()
    on_owner(lambda: asserted(turn.borrow()))
    turn.give_back()
    assert not turn.borrow(), "another borrower is there"


def test_none_borrows_for_a_while() -> None:
    turn = ReceiveTurn()
    assert turn.lendable
    turn.pause()
    assert not turn.lendable
    eventually(lambda: turn.lendable)


# Callers


def test_who_waits_for_a_call_receives_its_answer(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    me = threading.current_thread().name
    with receivers(monkeypatch) as seen:
        eventually(lambda: actor.note(1) == 1 and me in seen, PATIENCE)


def test_who_receives_hands_out_what_is_others(served: Served) -> None:
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor"), resolver.lookup("gate")
    for n in range(20):
        actor.note(n)  # so that the next one is received by its caller
        results: list[bool] = []
        waits = threading.Thread(target=lambda into=results, n=n: into.append(gate.wait(f"{n}")))
        waits.start()
        assert [f.result(PATIENCE) for f in [actor.note.remote(i) for i in range(10)]] == list(range(10))
        assert gate.open.remote(f"{n}").result(PATIENCE)
        waits.join(PATIENCE)
        assert results == [True]


def test_who_receives_has_a_deadline(served: Served) -> None:
    resolver = FixedResolver(served.server.address)
    actor, gate = resolver.lookup("actor"), resolver.lookup("gate")
    for timeout in (0.0, 0.001, 0.03):
        actor.note(1)
        with pytest.raises(DeadlineError):
            gate.options(timeout=timeout).wait("late")
    assert gate.open("late")
    assert actor.note(2) == 2


def test_large_results_of_calls_one_after_the_other(served: Served) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    for size in (1, 1 << 20, 1, 300 << 10, 5 << 20, 1):
        actor.note(1)
        assert len(actor.note(b"x" * size)) == size  # more than the read buffer holds


def test_a_lost_connection_is_noticed_by_who_receives(served: Served) -> None:
    actor = FixedResolver(served.server.address).lookup("actor")
    for n in range(10):
        assert actor.note(n) == n
        for session in served.server._listener.sessions:
            session.close()
    assert actor.seen() == list(range(10)), "each ran once, in order"
