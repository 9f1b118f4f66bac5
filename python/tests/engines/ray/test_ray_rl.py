"""fray.rl on a real Ray cluster: roles that a program creates, and a whole run whose roles are jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rl_small
from engines.conftest import PROGRAM, environ_without_fray, run
from engines.ray.ray_actors import travel_by_value
from fray.cluster.ray import RayCluster
from fray.v2.client import _ClusterClient
from test_rl_resources import (  # noqa: F401 - pytest runs them
    test_a_role_that_comes_after_its_group_was_created_is_an_error,
    test_n77_modules_of_actors_report_to_a_tracker_that_is_one,
    test_n84_unequal_counts_of_a_colocation_group_are_an_error,
    test_n96_methods_of_colocated_roles_never_collide,
    test_n96_nothing_stays_of_roles_that_cannot_be_created,
    test_n97_execute_async_returns_at_once,
    test_the_resource_manager_hosts_a_run,
)

travel_by_value("actors", "test_rl_resources", "test_rl_hosting")

needs_program = pytest.mark.skipif(
    not os.access(PROGRAM, os.X_OK),
    reason="FRAY_TEST_PROGRAM names no program; scripts/test-engines builds it",
)


@pytest.fixture(scope="module")
def room(nodes: Any) -> Iterator[None]:
    """Add a node where all roles fit."""
    node = nodes.add(num_cpus=16)
    yield
    nodes.remove(node)


@pytest.fixture
def client(room: None, cluster: RayCluster) -> Iterator[_ClusterClient]:  # noqa: ARG001
    with _ClusterClient(cluster) as client:
        yield client


@needs_program
def test_a_whole_run_whose_roles_live_on_ray(
    room: None,  # noqa: ARG001
    nodes: Any,
    cluster: RayCluster,
    tmp_path: Path,
) -> None:
    """Roles of Go are jobs beside those of Python, and all are found by the names that Ray keeps."""
    spec = f"ray:{nodes.address}?namespace={cluster.namespace}"
    environ = environ_without_fray(**nodes.environ, FRAY_CLIENT_SPEC=spec, FRAY_PROGRAM=PROGRAM)
    done = run([sys.executable, rl_small.__file__, str(tmp_path / "out")], tmp_path, environ)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    assert done.stdout.splitlines()[-1] == "result: 2 checkpoints, 16 trajectories"
    assert {job.name for job in cluster.list_jobs()} >= {"coordination", "training", "rollout_worker_1"}
    assert all(job.status.ended for job in cluster.list_jobs())
