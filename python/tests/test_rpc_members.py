"""Handles of one of several actors of a name: they stay with that one, also when they are sent."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from fray.cluster import LocalCluster
from fray.rpc import ActorServer, ConnectionSettings
from fray.rpc._calling.resolve import Endpoint, Fate, RouteTable
from fray.rpc.errors import UnknownActorError
from fray.rpc.resolver import BaseResolver, handle_of


class Named:
    def __init__(self, name: str) -> None:
        self._name = name

    def who(self) -> str:
        return self._name


class Told:
    """A directory that knows what it is told."""

    namespace = "rl"
    knows_fates = False

    def __init__(self) -> None:
        self.routes = RouteTable()
        self.found: list[Endpoint] = []
        self._changed = threading.Condition()

    def endpoints(self, name: str) -> list[Endpoint]:
        return [endpoint for endpoint in self.found if endpoint.name == name]

    known = fresh = endpoints

    def settings(self, given: ConnectionSettings, wait: bool = True) -> ConnectionSettings:  # noqa: ARG002
        return given

    def tell(self, *found: Endpoint) -> None:
        with self._changed:
            self.found = list(found)
            self._changed.notify_all()

    def wait(self, name: str, timeout: float) -> None:
        del name
        with self._changed:
            self._changed.wait(timeout)

    def fate(self, name: str, job_id: str = "") -> Fate:
        del name, job_id
        return Fate()

    def missing(self, name: str) -> str:
        return f'no actor "{name}" is here'


@pytest.fixture
def servers() -> Iterator[list[ActorServer]]:
    with LocalCluster() as cluster:
        started = []
        for n in range(3):
            server = ActorServer(cluster, namespace="rl")
            server.register("pool", Named(f"server {n}"))
            server.serve_background()
            started.append(server)
        yield started
        for server in started:
            server.shutdown(0)


def at(server: ActorServer, place: str) -> Endpoint:
    return Endpoint("pool", server.address, place=place)


def test_a_member_that_is_sent_is_followed(servers: list[ActorServer]) -> None:
    directory = Told()
    directory.tell(at(servers[0], "job/0"), at(servers[1], "job/1"))
    resolver = BaseResolver(directory, None, None)
    first, second = resolver.lookup_all("pool")
    sent = first.__fray_actor__()
    assert sent == ("pool", "rl", f"actor://{servers[0].address}/pool", "job/0")
    assert first.__reduce__()[1][:4] == sent

    received = handle_of(*sent, near=resolver)
    assert (received == first, received == second) == (True, False)
    assert (received.who(), second.who()) == ("server 0", "server 1")

    directory.tell(at(servers[1], "job/1"), at(servers[2], "job/0"))
    servers[0].shutdown(0)
    assert received.who() == "server 2", "task 0 is there now"

    directory.tell(at(servers[1], "job/1"))
    servers[2].shutdown(0)
    with pytest.raises(UnknownActorError):
        received.options(resolve_timeout=0.1).who()


def test_a_member_without_a_task_is_its_address(servers: list[ActorServer]) -> None:
    directory = Told()
    directory.tell(at(servers[0], ""), at(servers[1], ""))
    resolver = BaseResolver(directory, None, None)
    sent = resolver.lookup_all("pool")[0].__fray_actor__()
    assert sent[3] == servers[0].address
    assert handle_of(*sent, near=resolver).who() == "server 0"


def test_several_of_one_task(servers: list[ActorServer]) -> None:
    directory = Told()
    directory.tell(at(servers[0], "job/0"), at(servers[1], "job/0"), at(servers[2], "job/1"))
    found = BaseResolver(directory, None, None).lookup_all("pool")
    assert [handle.who() for handle in found] == ["server 0", "server 1", "server 2"]


def test_a_handle_of_a_name_is_no_member(servers: list[ActorServer]) -> None:
    directory = Told()
    directory.tell(at(servers[0], "job/0"), at(servers[1], "job/1"))
    name, namespace, _, member = BaseResolver(directory, None, None).lookup("pool").__fray_actor__()
    assert (name, namespace, member) == ("pool", "rl", "")
