"""NexRL's controller class: the processes of a run, and a whole run as jobs of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rl_small
from actors import PATIENCE
from controller import TOKEN, Controller
from fray.cluster import FrayCluster, LocalCluster, ResourceConfig
from fray.cluster.ray.reach import Reach
from fray.rl import Config, ConfigError, NexRLController
from fray.rl.launching import Process, RunFailedError, become_program, processes_of
from test_rl_go import TOP, program
from waiting import eventually

__all__ = ["program"]

needs_program = pytest.mark.skipif(
    not (TOP / "cmd" / "fray" / "rl.go").exists(), reason="this tree has no command fray rl"
)


def test_processes_are_those_of_the_module() -> None:
    """One for each role or, of a colocation group, for each of its members."""
    grouped = {"colocation_group": "rollouts", "count": 2}
    config = Config(
        {
            "rollout_worker": {"num_workers": 2},
            "data": {"type": "my.data:Loader"},
            "logger": {"backend": "wandb"},
            "service": {"train_service": {"class": "my.model:Service"}},
            "roles": {
                "rollout_worker": grouped,
                "algorithm_processor": grouped,
                "trajectory_pool": {"count": 2},
                "weight_sync_controller": {"colocation_group": "lead"},
                "controller": {"colocation_group": "lead"},
            },
        }
    )
    both = ("rollout_worker:{}", "algorithm_processor:{}")
    assert sorted(processes_of(config), key=lambda each: each.name) == [
        Process("data_loader", ("data_loader:0",), "data_loader", True),
        Process("experiment_logger", ("experiment_logger:0",), "experiment_logger", True),
        Process("lead", ("weight_sync_controller:0", "controller:0"), "lead", False),
        Process("rollouts_0", tuple(role.format(0) for role in both), "rollouts", True),
        Process("rollouts_1", tuple(role.format(1) for role in both), "rollouts", True),
        Process("train_batch_pool", ("train_batch_pool:0",), "train_batch_pool", False),
        Process("train_service_0", ("train_service:0",), "train_service", True),
        Process("train_worker_0", ("train_worker:0",), "train_worker", True),
        Process("trajectory_pool_0", ("trajectory_pool:0",), "trajectory_pool", False),
        Process("trajectory_pool_1", ("trajectory_pool:1",), "trajectory_pool", False),
    ]
    validates = {process.name for process in processes_of(Config({"validate": {"data": {"type": "mock"}}}))}
    assert {"validator", "validate_dataloader"} <= validates


@pytest.mark.parametrize(
    ("roles", "problem"),
    [
        (
            {"train_worker": {"count": 2}, "algorithm_processor": {}},
            'group "g" have different counts: algorithm_processor has 1, train_worker has 2; give',
        ),
        (
            {"train_worker": {}, "validator": {"count": 1}},
            r'group "g" has roles of Python \(train_worker\) and of Go; give each kind a group',
        ),
    ],
)
def test_n84_groups_that_cannot_be(roles: dict[str, Any], problem: str) -> None:
    grouped = {role: {**more, "colocation_group": "g"} for role, more in roles.items()}
    with pytest.raises(ConfigError, match=problem):
        processes_of(Config({"roles": grouped}))


def test_this_process_is_no_cluster_for_roles_of_go() -> None:
    with pytest.raises(ConfigError, match=r"set FRAY_CLIENT_SPEC to .* start \"fray apply --local\""):
        NexRLController(Config({}), LocalCluster())


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(ConfigError, match=r"install a release of fray-ml, .* or set FRAY_PROGRAM"):
        become_program(["controller:0"], "{}")


class OnRay:
    """A connection from a job on Ray, whose head is another machine or this one."""

    def __init__(self, head: str) -> None:
        self.head = head

    def reach(self) -> Reach:
        return Reach(self.head, 7, "token", "fingerprint", "rl")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("head", ["10.0.0.1", "10.0.0.2"])
def test_on_ray_roles_of_go_are_on_the_machine_of_the_head(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, head: str
) -> None:
    """There the registry answers programs without Ray."""
    (tmp_path / "fray").write_text("")
    (tmp_path / "fray").chmod(0o700)
    began: list[Any] = []
    monkeypatch.setattr("os.execve", lambda *given: began.append(given))
    monkeypatch.setattr("fray.cluster.current_cluster", lambda: OnRay(head))
    monkeypatch.setenv("FRAY_CLUSTER_SPEC", "ray:10.0.0.1:6379")
    monkeypatch.setenv("FRAY_HOST_ADDRESS", "10.0.0.2")
    monkeypatch.setenv("FRAY_PROGRAM", str(tmp_path / "fray"))
    if head != "10.0.0.2":
        with pytest.raises(ConfigError, match=r"head, which is 10\.0\.0\.1, and this is 10\.0\.0\.2: give"):
            become_program(["controller:0"], "{}")
        return
    become_program(["controller:0"], "{}")
    ((program, words, environ),) = began
    assert words == [program, "rl", "controller:0"]
    assert environ["FRAY_CLUSTER_ADDRESS"] == "127.0.0.1:7"
    assert (environ["FRAY_NAMESPACE"], environ["FRAY_RL_CONFIG"]) == ("rl", "{}")


def test_requests_have_what_their_groups_need(remote: FrayCluster, tmp_path: Path) -> None:
    large = ResourceConfig(cpu=8)
    controller = NexRLController(rl_small.document(tmp_path), remote, {"training": large})
    requests = {request.name: request for request in map(controller._request, controller._processes)}
    assert sorted(requests) == ["coordination", "rollout_worker_0", "rollout_worker_1", "training"]
    assert requests["training"].resources == large
    assert not requests["coordination"].resources.preemptible
    assert requests["rollout_worker_0"].resources.preemptible


@pytest.fixture
def cluster(
    serve: Callable[..., Controller], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FrayCluster]:
    """A cluster that runs jobs as processes, with what agents set for them."""
    controller = serve(runs=True)
    monkeypatch.chdir(tmp_path)  # where no project is, which would be shipped
    monkeypatch.setenv("FRAY_CLUSTER_ADDRESS", controller.address)
    monkeypatch.setenv("FRAY_PROGRAM", str(program))
    made = FrayCluster(controller.address, namespace="rl", token=TOKEN, timeout=300)
    yield made
    made.close()


@needs_program
def test_a_whole_run(cluster: FrayCluster, tmp_path: Path) -> None:
    out = tmp_path / "out"
    rl_small.launched(out, cluster).run()
    assert rl_small.check(out) == "result: 2 checkpoints, 16 trajectories"
    assert all(job.status.ended for job in cluster.list_jobs())


@needs_program
def test_a_run_that_is_stopped(cluster: FrayCluster, tmp_path: Path) -> None:
    """It has more data than it will ever use."""
    config = rl_small.document(tmp_path / "out")
    config.data.num_samples, config.train_worker.total_train_steps = 1_000_000, 1_000_000
    controller = NexRLController(config, cluster)
    running = threading.Thread(target=controller.run)
    running.start()
    try:
        eventually(lambda: _phase(controller) == "running")
        assert controller.activity_tracker.check_module_liveness(PATIENCE)
        controller.stop("enough")
        running.join(PATIENCE)
        assert not running.is_alive()
    finally:
        controller.terminate()
        running.join()


def _phase(controller: NexRLController) -> str:
    from fray.rpc.errors import ActorError

    try:
        return str(controller.status()["phase"])
    except ActorError:  # it is not there yet
        return ""


@needs_program
def test_a_run_that_fails(cluster: FrayCluster, tmp_path: Path) -> None:
    config = rl_small.document(tmp_path / "out")
    config.resume = {"mode": "from_path", "resume_path": str(tmp_path / "global_step_3")}
    with pytest.raises(RunFailedError, match=r"the run failed: .*global_step_3.* is no checkpoint"):
        NexRLController(config, cluster).run()
