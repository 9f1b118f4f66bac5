"""How actors that are being created are awaited: seldom where their cluster reports what happens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fray.cluster import AttemptInfo, JobId, JobInfo, JobStatus, Namespace, WaitTimeoutError
from fray.v2._hosted import HostedActor
from fray.v2.actor import ActorCreationError, PendingActor, wait_ready


class Awaited:
    """An actor that answers a poll as the test has it."""

    notified = True

    def __init__(self, name: str, *answers: bool | ActorCreationError) -> None:
        self.name = name
        self.handle = name
        self.polls: list[float] = []
        self._answers = list(answers)

    def poll(self, seconds: float) -> bool:
        self.polls.append(seconds)
        answer = self._answers.pop(0)
        if isinstance(answer, ActorCreationError):
            raise answer
        return answer


def ready(count: int, *actors: Awaited, timeout: float | None = None) -> list[Any]:
    return wait_ready(cast("list[PendingActor]", list(actors)), count, timeout)


def test_an_actor_alone_is_polled_once() -> None:
    actor = Awaited("one", True)
    assert ready(1, actor) == ["one"]
    assert len(actor.polls) == 1
    assert actor.polls[0] > 1, "it waits until something happens"


def test_no_wait_is_longer_than_the_timeout() -> None:
    actor = Awaited("one", False)
    with pytest.raises(WaitTimeoutError, match="one"):
        ready(1, actor, timeout=0)
    assert actor.polls == [0]
    none = Awaited("one", False)
    assert ready(0, none) == []
    assert none.polls == [0]


def test_of_several_the_first_is_waited_for_and_all_are_polled() -> None:
    failure = ActorCreationError("two", "no such lesson")
    first, second = Awaited("one", False, False, True), Awaited("two", False, failure)
    with pytest.raises(ActorCreationError, match="no such lesson"):
        ready(2, first, second)
    assert first.polls[0] == 0
    assert 0 < first.polls[1] < 1, "the second is not left alone for long"
    assert second.polls == [0, 0]


def test_what_happened_between_two_polls_is_not_missed() -> None:
    """The registry is told how many ends of attempts are known, and answers at once if there were more."""
    ended = AttemptInfo(1, "it was launched", started_at=1.0, ended_at=2.0, reason="its node died")
    infos = [
        JobInfo(JobId("job-1"), "job", Namespace("rl"), JobStatus.PENDING, attempts=attempts)
        for attempts in ((), (ended,), (ended,))
    ]
    asked: list[int] = []

    def await_hosted(_job: JobId, _name: str, _seconds: float, known: int) -> tuple[bool, JobInfo]:
        asked.append(known)
        return False, infos.pop(0)

    cluster: Any = SimpleNamespace(await_hosted=await_hosted, namespace="rl", metadata=None)
    actor = HostedActor.__new__(HostedActor)
    actor._cluster, actor._job_id, actor._created, actor.name = cluster, JobId("job-1"), True, "one"
    actor._reminded, actor._waits, actor._ended = float("inf"), await_hosted, 0
    assert [actor.poll(1.0) for _ in range(3)] == [False] * 3
    assert asked == [0, 0, 1]
