"""What a killed registry, a lost answer and Ray's own imports leave as it was, on a real Ray cluster."""

from __future__ import annotations

import importlib
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engines.ray.helpers import WAIT, until
from engines.ray.ray_actors import travel_by_value
from fray.cluster import Entrypoint, JobRequest, JobStatus, Namespace, ResourceConfig
from fray.cluster.ray import supervisor
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.journal import Journal
from fray.cluster.ray.naming import supervisor_name
from fray.cluster.ray.records import Job
from fray.cluster.ray.store import Store
from fray.v2.client import _ClusterClient

TINY = ResourceConfig(cpu=0.1, ram="8m")


class Importing:
    """Imports a package that Ray pickles in a way of its own."""

    def known(self) -> tuple[bool, bool]:
        """Return whether pydantic is imported here, and whether Ray pickles its fields in its own way."""
        import ray.cloudpickle

        dispatched = {
            f"{kind.__module__}.{kind.__qualname__}" for kind in ray.cloudpickle.CloudPickler.dispatch
        }
        return "pydantic" in sys.modules, "pydantic.v1.fields.ModelField" in dispatched

    def use(self) -> str:
        return str(importlib.import_module("pydantic").__version__)


def test_ray_imports_what_it_pickles_specially_with_the_actor(cluster: Any) -> None:
    travel_by_value(__name__)
    with _ClusterClient(cluster) as client:
        actor = client.create_actor(Importing, name="importing", resources=TINY)
        assert actor.known() == (False, False)
        assert actor.use()
        assert actor.known() == (True, True)


def test_ray_output_that_is_sent_again_is_kept_once(cluster: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    words = ["sh", "-c", f"until test -e {gate}; do sleep 0.05; done; echo last"]
    job = cluster.launch(JobRequest("writes", Entrypoint.from_command(words), resources=TINY))
    until(lambda: cluster.poll(job).status is JobStatus.RUNNING)
    for _ in range(2):  # the answer to the first was lost
        assert cluster._calls.call("write_log", job, 1, 1, 0, b"one\n")
    gate.touch()
    cluster.wait(job, raise_on_failure=True, timeout=WAIT)
    chunks, over = cluster._calls.call("read_log", job, 0, 0.0)
    assert over
    assert b"".join(chunk.data for chunk in chunks) == b"one\nlast\n"


class KilledError(Exception):
    """The registry's process ends here."""


def test_ray_registry_is_killed_within_the_launch_of_a_group(cluster: Any) -> None:
    """The next one has all jobs of the group, or none, and they run."""
    import ray

    journal = Journal(Store(cluster.namespace))
    written: list[Job] = []

    def put(job: Job) -> None:
        if written:
            raise KilledError
        journal.put(job)
        written.append(job)

    requests = [
        JobRequest(name, Entrypoint.from_command(["true"]), resources=TINY) for name in ("one", "two")
    ]
    launches = [cluster._shipper.launch(request) for request in requests]
    try:
        JobTable(Namespace(cluster.namespace), put, journal.together).launch(launches, "pair", "request", 1.0)
    except KilledError:
        ray.kill(ray.get_actor("fray-registry", namespace=cluster.namespace), no_restart=False)
    until(lambda: len(cluster.list_jobs()) == 2)
    jobs = [job.job_id for job in cluster.list_jobs()]
    infos = cluster.wait(jobs, raise_on_failure=True, timeout=WAIT)
    assert [(info.name, info.group) for info in infos] == [("one", "pair"), ("two", "pair")]


def test_ray_supervisor_whose_job_is_over_leaves(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the registry was killed before it ended the supervisor, which Ray starts again."""
    import ray

    job = cluster.launch(JobRequest("brief", Entrypoint.from_command(["true"]), resources=TINY))
    cluster.wait(job, raise_on_failure=True, timeout=WAIT)
    monkeypatch.setattr(supervisor, "_IDLE", 0.1)
    left = threading.Event()
    itself = SimpleNamespace(leave=SimpleNamespace(remote=left.set))
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(current_actor=itself))
    supervisor.Supervisor(cluster.namespace, "", supervisor_name(job))
    assert left.wait(WAIT)


def test_ray_supervisor_whose_job_waits_stays(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    job = cluster.launch(
        JobRequest("waits", Entrypoint.from_command(["true"]), resources=ResourceConfig(cpu=1000))
    )
    monkeypatch.setattr(supervisor, "_IDLE", 0.1)
    asked: list[bool] = []
    made = supervisor.Supervisor(cluster.namespace, "", supervisor_name(job))
    is_needed = made._is_needed

    def noted() -> bool:
        asked.append(is_needed())
        return asked[-1]

    monkeypatch.setattr(made, "_is_needed", noted)
    until(lambda: len(asked) >= 3)
    assert all(asked)
    made._count(1)  # it asks no more
    cluster.terminate(job)
