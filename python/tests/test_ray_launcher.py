"""What the registry concludes from Ray about the process of an actor, without Ray."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from fray.cluster import Namespace, TaskState
from fray.cluster.ray.actors import launcher
from fray.cluster.ray.actors.keeper import HostLostError, HostUnmadeError
from fray.cluster.ray.actors.launcher import RayHost, RayLauncher
from fray.cluster.ray.nodes import Nodes
from fray.cluster.ray.records import Place, TaskEnd


class RayError(Exception):
    """Of Ray."""


class RayActorError(RayError):
    """The actor is gone."""


class ActorUnavailableError(RayActorError):
    """The network is away."""


class ActorDiedError(RayActorError):
    """It died, or was never made."""

    actor_init_failed = False


class OutOfMemoryError(RayError):
    """Ray has killed it."""


class WorkerCrashedError(RayError):
    """Its process is gone."""


class NodeDiedError(RayError):
    """Its node is gone."""


class RaySystemError(RayError):
    """A call has failed, whatever became of the process."""


PROBLEMS = SimpleNamespace(
    RayError=RayError,
    RayActorError=RayActorError,
    ActorUnavailableError=ActorUnavailableError,
    ActorDiedError=ActorDiedError,
    OutOfMemoryError=OutOfMemoryError,
    WorkerCrashedError=WorkerCrashedError,
    NodeDiedError=NodeDiedError,
)
END = TaskEnd(0, TaskState.SUCCEEDED, exit_code=0)


class Handle:
    """The handle of a Ray actor that answers as the test has it."""

    def __init__(self, *answers: object) -> None:
        self._answers: Iterator[object] = iter(answers)
        self.call = SimpleNamespace(remote=self._call)

    def _call(self, method: str, payload: bytes) -> Awaitable[object]:
        assert method == "run"
        assert payload
        return self._answer(next(self._answers))

    @staticmethod
    async def _answer(answer: object) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer


def outcome(*answers: object) -> TaskEnd:
    import pickle

    sent = [pickle.dumps(("value", each)) if isinstance(each, TaskEnd) else each for each in answers]
    host = RayHost(SimpleNamespace(exceptions=PROBLEMS), Handle(*sent))
    return asyncio.run(host.outcome())


@pytest.mark.parametrize("problem", [ActorUnavailableError(), RaySystemError("the reply is lost")])
def test_a_process_that_may_live_is_asked_again(problem: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_AGAIN", 0.0)
    assert outcome(problem, problem, END) == END


@pytest.mark.parametrize(
    "problem", [ActorDiedError(), RayActorError(), OutOfMemoryError(), WorkerCrashedError(), NodeDiedError()]
)
def test_a_process_that_ray_reports_dead_is_lost(problem: Exception) -> None:
    with pytest.raises(HostLostError):
        outcome(problem)


def test_a_process_that_cannot_be_made() -> None:
    problem = ActorDiedError("no package")
    problem.actor_init_failed = True
    with pytest.raises(HostUnmadeError, match="no package"):
        outcome(problem)


class Table:
    """Ray's node table: as it is at each reading, the last of which stays."""

    def __init__(self, *readings: dict[str, Any]) -> None:
        self._readings = list(readings)
        self.read = 0

    def remote(self, _: type) -> None:
        return None

    def nodes(self) -> list[dict[str, Any]]:
        self.read += 1
        return [self._readings.pop(0) if len(self._readings) > 1 else self._readings[0]]


@pytest.fixture
def raylet() -> Iterator[int]:
    """Return a port at which something listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def node(port: int, alive: bool = True, death: str = "") -> dict[str, Any]:
    return {
        "NodeID": "n1",
        "Alive": alive,
        "NodeManagerAddress": "127.0.0.1",
        "NodeManagerPort": port,
        "DeathReasonMessage": death,
    }


def loss(table: Table) -> str:
    return asyncio.run(RayLauncher(table, Namespace("rl"), Nodes()).loss([Place("n1")]))


def test_a_node_that_lives_on_is_no_loss(raylet: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_SETTLED", 0.0)
    assert loss(Table(node(raylet))) == ""


def test_a_node_that_ends_after_its_processes_is_a_loss(raylet: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_PAUSE", 0.0)
    monkeypatch.setattr(launcher, "_SETTLED", 300.0)
    table = Table(node(raylet), node(raylet), node(raylet, alive=False, death="preempted"))
    assert loss(table) == "Ray's node 127.0.0.1 died: preempted"


def test_a_node_whose_raylet_has_ended_is_a_loss() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        assert loss(Table(node(closed.getsockname()[1]))).endswith("died: its raylet has ended")


def unreachable(*_: object) -> None:
    raise TimeoutError("timed out")


def test_a_node_that_cannot_be_reached_is_dead_once_ray_finds_it_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr(launcher, "_PAUSE", 0.0)
    monkeypatch.setattr(launcher, "_SETTLED", 0.0)
    monkeypatch.setattr(launcher, "_DOUBT", 300.0)
    table = Table(node(1), node(1), node(1, alive=False, death="missed heartbeats"))
    assert loss(table) == "Ray's node 127.0.0.1 died: missed heartbeats"


def test_a_node_that_is_never_reached_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "create_connection", unreachable)
    monkeypatch.setattr(launcher, "_DOUBT", 0.0)
    assert loss(Table(node(1))) == "Ray's node 127.0.0.1 cannot be reached"
