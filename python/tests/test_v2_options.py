"""Options of actors: none is taken for an argument of a constructor, nor the other way round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fray.cluster import EnvironmentConfig
from fray.v2 import Actor, ActorOptions, LocalClient, ResourceConfig, set_current_client


class Keeper:
    """Takes arguments with the names of options."""

    def __init__(self, *args: Any, max_restarts: int = 0, **kwargs: Any) -> None:
        self.given = {"max_restarts": max_restarts, **kwargs, **{str(i): each for i, each in enumerate(args)}}

    def all(self) -> dict[str, Any]:
        return self.given


class Plain:
    def __init__(self, start: int = 0) -> None:
        self.start = start

    def read(self) -> int:
        return self.start


@pytest.fixture
def client() -> Iterator[LocalClient]:
    with LocalClient() as client:
        yield client


def test_constructors_get_all_other_arguments(client: LocalClient) -> None:
    given: dict[str, Any] = {
        "max_restarts": 3,
        "environment": "prod",
        "lifetime": "long",
        "count": 2,
        "actor_class": "x",
    }
    assert client.create_actor(Keeper, name="keeper", **given).all() == given
    group = client.create_actor_group(Keeper, name="pool", count=1, max_restarts=7, lifetime="long")
    assert group.wait_ready()[0].all() == {"max_restarts": 7, "lifetime": "long"}


def test_an_actor_class_takes_arguments_of_any_name(client: LocalClient) -> None:
    given = {"name": "n", "resources": 1, "options": {"a": 1}, "max_restarts": 3}
    template = Actor(Keeper, client).options(name="keeper", max_restarts=1)
    keeper = template.options(max_concurrency=2).remote(0, **given)
    assert (keeper.name, keeper.all()) == ("keeper", {**given, "0": 0})
    found = client._actors()._local
    assert found is not None
    actor = found.find("keeper")
    assert actor is not None
    assert actor._spec.options == ActorOptions(max_restarts=1, max_concurrency=2)
    assert template._options.max_concurrency is None, "options() changed what it was called on"


def test_an_actor_class_uses_the_current_client(client: LocalClient) -> None:
    with set_current_client(client):
        assert Actor(Plain).remote(4).read() == 4


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"max_restart": 1}, TypeError, "max_restart"),
        ({"max_restarts": "3"}, TypeError, "max_restarts is '3', want int"),
        ({"max_restarts": True}, TypeError, "max_restarts is True, want int"),
        ({"max_restarts": -2}, ValueError, "max_restarts is -2; it must be -1, for no end, or more"),
        ({"max_concurrency": 0}, ValueError, "max_concurrency is 0; it must be at least 1"),
        ({"max_concurrency": 1.5}, TypeError, "max_concurrency is 1.5, want int or None"),
        ({"get_if_exists": 1}, TypeError, "get_if_exists is 1, want bool"),
        ({"lifetime": "ever"}, ValueError, "lifetime is 'ever'; it must be 'non_detached' or 'detached'"),
        ({"lifetime": None}, TypeError, "lifetime is None, want str"),
        ({"environment": {}}, TypeError, "environment is {}, want EnvironmentConfig or None"),
        ({"concurrency_groups": ["io"]}, TypeError, r"concurrency_groups is \['io'\], want Mapping"),
        ({"concurrency_groups": {"io": "2"}}, TypeError, r"concurrency_groups\['io'\] is '2', want int"),
        ({"concurrency_groups": {"io": 0}}, ValueError, r"concurrency_groups\['io'\] is 0; it must be at"),
        ({"concurrency_groups": {1: 1}}, TypeError, "concurrency_groups has the key 1; want the name"),
    ],
)
def test_wrong_options(wrong: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ActorOptions(**wrong)
    with pytest.raises(error, match=match):
        Actor(Plain).options(**wrong)


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ({"max_restarts": 3}, TypeError, "Plain takes no argument 'max_restarts'; as an"),
        ({"options": {"lr": 1}}, TypeError, "want ActorOptions or None; pass a"),
        ({"resources": {"cpu": 1}}, TypeError, "want ResourceConfig; pass a constructor's argument"),
        ({"name": 7}, TypeError, "name is 7, want str or None"),
        ({"options": ActorOptions(get_if_exists=True)}, ValueError, "get_if_exists"),
    ],
)
def test_wrong_arguments_create_nothing(
    client: LocalClient, wrong: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        client.create_actor(Plain, **wrong)
    with pytest.raises(error, match=match):
        client.create_actor_group(Plain, count=1, **wrong)
    local = client._actors()._local
    assert local is None or not local.busy


def test_unnamed_actors_are_apart(client: LocalClient) -> None:
    first, second = client.create_actor(Plain, 1), client.create_actor(Plain, 2)
    assert (first.read(), second.read()) == (1, 2)
    assert first.name != second.name
    assert first.name.startswith("plain-")
    assert client.create_actor_group(Plain, 3, count=1).wait_ready()[0].read() == 3
    client.delete_actor(first)
    assert second.read() == 2


def test_all_options_have_their_types() -> None:
    environment, groups = EnvironmentConfig.create(env_vars={"A": "b"}), {"io": 2}
    options = ActorOptions(environment=environment, lifetime="detached", concurrency_groups=groups)
    assert (options.environment, options.concurrency_groups) == (environment, groups)
    assert ResourceConfig() == Actor(Plain)._resources
