"""The resource manager: N84 and N96."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from actors import PATIENCE
from fray.cluster import GpuConfig, TpuConfig
from fray.rl import (
    ActivityTrackerProxy,
    Config,
    MockDataLoader,
    MockRolloutWorker,
    NexRLModule,
    NexRLRole,
    RayActorWrapper,
    RayResourceManager,
    ResourceManager,
    TrajectoryPool,
    execute,
    execute_async,
)
from fray.rl.resources import ResourceError
from fray.rpc.errors import ApplicationError
from fray.v2 import LocalClient
from fray.v2.actor import ActorCreationError
from test_rl_hosting import Pool, Weights


@pytest.fixture
def client() -> Iterator[LocalClient]:
    with LocalClient() as client:
        yield client


class Speaker:
    def __init__(self, config: Any) -> None:
        self.name = config.name

    def answer(self, whom: str = "you") -> str:
        return f"{self.name} answers {whom}"

    def call(self, other: Any) -> str:
        return str(execute(other.answer, self.name))


class Waiting:
    def __init__(self, config: Any) -> None:
        del config
        self._gate = threading.Event()

    def hold(self) -> bool:
        return self._gate.wait(PATIENCE)

    def open(self) -> None:
        self._gate.set()


class Other(Speaker):
    def answer(self, whom: str = "you") -> str:
        return f"{self.name} ignores {whom}"


def test_n96_methods_of_colocated_roles_never_collide(client: LocalClient) -> None:
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Speaker, Config({"name": "a"}), 2, "both")
    manager.register_role(NexRLRole.ROLLOUT_WORKER, Other, Config({"name": "b"}), 2, "both")
    manager.register_role(NexRLRole.TRAIN_WORKER, Other, Config({"name": "c"}), 1)
    manager.create_all_actors()
    manager.create_all_actors()  # changes nothing
    first, second = manager.get_actor_wrapper(NexRLRole.VALIDATOR)
    others = manager.get_actor_wrapper(NexRLRole.ROLLOUT_WORKER)
    assert (first.answer("x"), others[1].answer()) == ("a answers x", "b ignores you")
    assert first.address == others[0].address
    assert first.call(others[0]) == "b ignores a"  # a wrapper as an argument
    assert second.call(manager.get_actor_wrapper(NexRLRole.TRAIN_WORKER)[0]) == "c ignores a"
    assert manager.get_actor_wrapper(NexRLRole.DATA_LOADER) == []


class Broken:
    def __init__(self, config: Any) -> None:
        raise OSError(f"{config.name} has no disk")

    def answer(self) -> str:
        return "never"


def test_n96_nothing_stays_of_roles_that_cannot_be_created(client: LocalClient) -> None:
    """Neither the group that failed nor the others of the call, so that it may be made again."""
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Speaker, Config({"name": "a"}), 1, "first")
    manager.register_role(NexRLRole.TRAIN_WORKER, Broken, Config({"name": "b"}), 1)
    with pytest.raises(ActorCreationError, match="b has no disk"):
        manager.create_all_actors()
    assert manager.get_actor_wrapper(NexRLRole.VALIDATOR) == []
    again = ResourceManager(client)
    again.register_role(NexRLRole.VALIDATOR, Speaker, Config({"name": "c"}), 1, "first")
    again.create_all_actors()
    assert again.get_actor_wrapper(NexRLRole.VALIDATOR)[0].answer() == "c answers you"


def test_n97_execute_async_returns_at_once(client: LocalClient) -> None:
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Waiting, Config(), 1, "g")
    manager.register_role(NexRLRole.ROLLOUT_WORKER, Waiting, Config(), 1, "g")
    manager.create_all_actors()
    (waiting,) = manager.get_actor_wrapper(NexRLRole.VALIDATOR)
    future = execute_async(waiting.hold)  # which ends by another call only
    execute(waiting.open)
    assert future.result(PATIENCE)


def test_n84_unequal_counts_of_a_colocation_group_are_an_error(client: LocalClient) -> None:
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Speaker, Config({"name": "a"}), 2, "g")
    manager.register_role(NexRLRole.ROLLOUT_WORKER, Other, Config({"name": "b"}), 3, "g")
    with pytest.raises(ResourceError, match=r'group "g" have .*: validator has 2, rollout_worker has 3'):
        manager.create_all_actors()
    with pytest.raises(ResourceError, match="registered already"):
        manager.register_role(NexRLRole.VALIDATOR, Speaker, Config(), 2)
    with pytest.raises(ResourceError, match="needs at least one"):
        manager.register_role(NexRLRole.DATA_LOADER, Speaker, Config(), 0)


def test_the_resource_manager_hosts_a_run(client: LocalClient) -> None:
    """Created actors have the protocols of their roles, so that references find them."""
    manager = ResourceManager(client)
    data = Config({"num_samples": 2, "batch_size": 2})
    manager.register_role(NexRLRole.DATA_LOADER, MockDataLoader, data, 1, "data")
    manager.register_role(NexRLRole.TRAJECTORY_POOL, Pool, Config(), 1, "data")
    manager.register_role(NexRLRole.WEIGHT_SYNC_CONTROLLER, Weights, Config(), 1)
    manager.create_all_actors()
    wrapped = [
        manager.get_actor_wrapper(role)[0]
        for role in (NexRLRole.TRAJECTORY_POOL, NexRLRole.DATA_LOADER, NexRLRole.WEIGHT_SYNC_CONTROLLER)
    ]
    worker = MockRolloutWorker(Config())
    worker.set_module_name("rollout_worker_0")
    worker.set_module_references(*wrapped)
    for _ in range(2):
        task = worker._get_rollout_task()
        assert task is not None
        assert worker.step(task) == "success"
    assert worker._get_rollout_task() is None  # the lease of the last one ends
    batch = TrajectoryPool(wrapped[0]).get_batch(2)
    assert batch is not None
    assert batch.values["response"] == ["0 tpmorp kcom", "1 tpmorp kcom"]
    assert wrapped[1].status()["leased"] == 0


def test_resources_of_colocated_roles_are_those_of_both(client: LocalClient) -> None:
    from fray.rl.resources import _resources

    manager = ResourceManager(client)
    for role, asked in (
        (NexRLRole.VALIDATOR, {"cpu": 2}),
        (NexRLRole.ROLLOUT_WORKER, {"cpu": 1, "ram": "2g"}),
    ):
        manager.register_role(role, Speaker, Config({"resources": asked}), 1, "g")
    ((both),) = manager._groups()
    assert (_resources(both).cpu, _resources(both).ram) == (3, "2g")
    manager.register_role(NexRLRole.TRAIN_WORKER, Speaker, Config({"resources": {"ram": "3g"}}), 1, "g")
    with pytest.raises(ResourceError, match="different ram: 2g and 3g"):
        _resources(manager._groups()[0])


def test_a_role_that_comes_after_its_group_was_created_is_an_error(client: LocalClient) -> None:
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Speaker, Config({"name": "a"}), 1, "g")
    manager.create_all_actors()
    manager.register_role(NexRLRole.ROLLOUT_WORKER, Other, Config({"name": "b"}), 1, "g")
    with pytest.raises(ResourceError, match='role rollout_worker came to colocation group "g" after'):
        manager.create_all_actors()


@pytest.mark.parametrize(
    ("asked", "device"),
    [({"tpu": "v5litepod-8"}, TpuConfig("v5litepod-8")), ({"gpu": {"type": "h100"}}, GpuConfig("h100", 1))],
)
def test_a_role_may_ask_for_an_accelerator(asked: dict[str, Any], device: Any) -> None:
    from fray.rl.resources import _resources

    manager = ResourceManager()
    manager.register_role(NexRLRole.TRAIN_WORKER, Speaker, Config({"resources": asked}), 1)
    ((role,),) = manager._groups()
    assert _resources([role]).device == device


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"memory": "1g"}, "resources of validator: .*memory"),
        ({"tpu": "v5litepod-8", "gpu": {"count": 1}}, "tpu and gpu are asked for"),
    ],
)
def test_resources_that_there_are_not(client: LocalClient, asked: dict[str, Any], problem: str) -> None:
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Speaker, Config({"resources": asked}), 1)
    with pytest.raises(ResourceError, match=problem):
        manager.create_all_actors()


class Central:
    """An activity tracker as an actor."""

    def __init__(self, config: Any) -> None:
        del config
        self.errors: list[str] = []
        self.lives: list[str] = []

    def start(self, module: str, work: str, incarnation: str, token: str) -> None:
        del module, work, token
        self.lives.append(incarnation)

    def end(self, token: str) -> None:
        del token

    def is_quiescent(self) -> bool:
        return True

    def report_exception(self, module: str, work: str, error: dict[str, str], severity: str) -> str:
        self.errors.append(f"{module}, {work}: {error['type']}, {severity}")
        return "known"

    def seen(self) -> tuple[list[str], list[str]]:
        return self.errors, self.lives


class Working(NexRLModule):
    """Works, and is wired by a program, as NexRL's controller does it."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self._config = config

    def work(self, fails: bool) -> str:
        with self._activity_tracker.track(self._module_name, "working"):
            if fails:
                raise ArithmeticError("no answer")
        return self._module_name


def test_n77_modules_of_actors_report_to_a_tracker_that_is_one(client: LocalClient) -> None:
    manager = ResourceManager(client)
    manager.register_role(NexRLRole.WEIGHT_SYNC_CONTROLLER, Central, Config(), 1)
    manager.register_role(NexRLRole.ROLLOUT_WORKER, Working, Config(), 2, "work")
    manager.register_role(NexRLRole.ALGORITHM_PROCESSOR, Working, Config(), 2, "work")
    manager.create_all_actors()
    (central,) = manager.get_actor_wrapper(NexRLRole.WEIGHT_SYNC_CONTROLLER)
    tracker = ActivityTrackerProxy(central)
    workers = manager.get_actor_wrapper(NexRLRole.ROLLOUT_WORKER)
    for i, worker in enumerate(workers):
        execute(worker.set_module_name, f"rollout_worker_{i}")
        execute(worker.set_activity_tracker, tracker)
    assert [execute(worker.work, False) for worker in workers] == ["rollout_worker_0", "rollout_worker_1"]
    with pytest.raises(ApplicationError, match="no answer"):
        execute(workers[1].work, True)
    errors, lives = execute(central.seen)
    assert errors == ["rollout_worker_1, working: ArithmeticError, error"]
    assert len({*lives, tracker.incarnation}) == 3  # each process has a life of its own


def test_the_names_of_nexrl(client: LocalClient) -> None:
    assert RayResourceManager is ResourceManager
    manager = RayResourceManager(client)
    manager.register_role(NexRLRole.VALIDATOR, Speaker, Config({"name": "a"}), 1)
    manager.create_all_actors()
    (wrapper,) = manager.get_actor_wrapper(NexRLRole.VALIDATOR)
    assert isinstance(wrapper, RayActorWrapper)
    alone = RayActorWrapper(wrapper._actor, Speaker, NexRLRole.VALIDATOR, is_colocated=False)
    assert alone.answer() == "a answers you"
