"""The tests of actors that every client passes, with a client of a real Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engines.ray.ray_actors import travel_by_value
from fray.cluster.ray import RayCluster
from fray.v2.client import _ClusterClient
from test_v2_actors import (  # noqa: F401 - pytest runs them
    test_a_constructor_gets_its_context,
    test_a_constructor_that_raises_is_reported_to_the_creator,
    test_actors_create_actors_and_jobs,
    test_an_actor_may_delete_itself,
    test_arguments_of_constructors_are_copies,
    test_fact_32_handles_work_in_jobs,
    test_fact_33_a_group_is_ready_at_n_of_m,
    test_fact_33_waiting_ends_at_once_when_there_will_be_none,
    test_fact_34_a_race_yields_one_actor,
    test_impossible_actors,
    test_max_concurrency,
    test_shutdown_ends_what_was_created,
    test_the_life_of_an_actor,
    test_what_cannot_travel_is_rejected,
)
from test_v2_deaths import (  # noqa: F401
    test_calls_that_wait_when_it_is_deleted,
    test_deleted_actors,
)
from test_v2_fact29 import (  # noqa: F401
    test_fact_29_a_clean_exit_is_the_end,
    test_fact_29_max_restarts_means_exactly_that,
    test_restarting_is_a_status,
)
from test_v2_groups import (  # noqa: F401
    test_a_bad_name,
    test_a_class_without_methods,
    test_a_group_that_is_lacking_ends_the_job,
    test_a_group_that_is_lacking_is_found_before_anything_starts,
    test_groups_run_beside_each_other,
)
from test_v2_kill import (  # noqa: F401
    test_actors_are_found_by_name,
    test_one_that_is_being_created_is_killed,
)

travel_by_value("created", "jobs", "test_v2_actors", "test_v2_groups")


@pytest.fixture(scope="module")
def room(nodes: Any) -> Iterator[None]:
    """Add a node where all actors of a test fit."""
    node = nodes.add(num_cpus=16)
    yield
    nodes.remove(node)


@pytest.fixture
def client(room: None, cluster: RayCluster) -> Iterator[_ClusterClient]:  # noqa: ARG001
    with _ClusterClient(cluster) as client:
        yield client


@pytest.fixture
def machine(client: _ClusterClient, cluster: RayCluster) -> tuple[RayCluster, _ClusterClient]:
    return cluster, client
