"""Who receives on a connection: whoever waits for an answer, where that saves time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from actors import PATIENCE
from fray.cluster import FixedResolver
from fray.rpc._reception import Reception
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
def on_host() -> Iterator[Callable[..., None]]:
    """Have the host's thread do something."""
    with ThreadPoolExecutor(1) as host:
        yield lambda what, *args: host.submit(what, *args).result(PATIENCE)


def test_one_receives_at_a_time(on_host: Callable[..., None]) -> None:
    reception = Reception()
    on_host(reception.begin)
    assert not reception.enter(), "the host receives"
    on_host(reception.open)
    on_host(lambda: asserted(reception.enter()))
    assert not reception.enter(), "a guest does"
    on_host(reception.leave)
    on_host(reception.close, lambda: True)
    assert not reception.enter(), "the host does again"


def asserted(what: bool) -> None:
    assert what


@pytest.mark.parametrize("recalled", [True, False], ids=["recalled", "by itself"])
def test_the_host_comes_back(recalled: bool) -> None:
    reception, came = Reception(), [False]
    opened, entered, ends = threading.Event(), threading.Event(), threading.Event()

    def hosts() -> None:
        reception.begin()
        reception.open()
        opened.set()
        assert entered.wait(PATIENCE)
        reception.close(lambda: False)
        came[0] = True
        assert ends.wait(PATIENCE)

    host = threading.Thread(target=hosts)
    host.start()
    assert opened.wait(PATIENCE)
    assert reception.enter()
    entered.set()
    reception.leave()
    if recalled:
        reception.recall()
    eventually(lambda: came[0], PATIENCE)
    assert not reception.enter()
    ends.set()
    ended(host)


def test_what_a_guest_came_upon_is_the_hosts(on_host: Callable[..., None]) -> None:
    reception = Reception()
    on_host(reception.begin)
    on_host(reception.open)
    assert reception.enter()
    reception.failure = EOFError()
    reception.leave()
    assert not reception.enter(), "nothing can be received any more"
    with pytest.raises(EOFError):
        on_host(reception.close, lambda: False)


def test_to_leave_again_does_no_harm(on_host: Callable[..., None]) -> None:
    reception = Reception()
    assert reception.enter()
    reception.leave()
    on_host(lambda: asserted(reception.enter()))
    reception.leave()
    assert not reception.enter(), "another guest is there"


def test_no_guests_for_a_while() -> None:
    reception = Reception()
    assert reception.welcoming
    reception.pause()
    assert not reception.welcoming
    eventually(lambda: reception.welcoming)


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
