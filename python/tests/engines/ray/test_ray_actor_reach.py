"""Checks 38 and 40: where actors run, and who reaches them; and what a dead registry changes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from engines.ray.helpers import until
from engines.ray.ray_actors import PATIENCE, Counter
from engines.ray.test_ray_actors import SMALL, job_of, process_at
from fray.cluster import ActorNotFoundError, ResourceConfig
from fray.cluster.ray import RayCluster
from fray.rpc import errors
from fray.v2 import ActorOptions
from fray.v2.client import _ClusterClient

ROOT = Path(__file__).parents[4]


@pytest.fixture
def client(cluster: RayCluster) -> Iterator[_ClusterClient]:
    with _ClusterClient(cluster) as client:
        yield client


def head() -> str:
    import ray

    (node,) = [n["NodeID"] for n in ray.nodes() if n["Alive"] and "node:__internal_head__" in n["Resources"]]
    return str(node)


def test_ray_38_what_is_not_preemptible_is_on_the_head_or_where_head_node_is(
    client: _ClusterClient, nodes: Any
) -> None:
    pinned = ResourceConfig(cpu=0.1, ram="8m", preemptible=False)
    other = nodes.add(num_cpus=4)
    try:
        first = client.create_actor(Counter, name="first", resources=pinned)
        assert first.node() == head()
        marked = nodes.add(num_cpus=1, resources={"head_node": 1})
        try:
            second = client.create_actor(Counter, name="second", resources=pinned)
            assert second.node() == marked
        finally:
            nodes.remove(marked)
    finally:
        nodes.remove(other)


def variables(cluster: RayCluster, **more: str) -> dict[str, str]:
    """Return the environment of a program that knows nothing of Ray."""
    reach = cluster.reach()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "FRAY_"))}
    return {**kept, **reach.variables(), **more}


_PLAIN = """
import sys
from fray.cluster import current_cluster
from fray.rpc import ClusterResolver
counter = ClusterResolver(current_cluster()).lookup("counter")
print(counter.increment(), counter.increment.remote(2).result())
assert "ray" not in sys.modules
"""


def test_ray_40_a_plain_process_calls(client: _ClusterClient, cluster: RayCluster) -> None:
    counter = client.create_actor(Counter, 40, name="counter", resources=SMALL)
    said = subprocess.run(
        [sys.executable, "-c", _PLAIN], env=variables(cluster), capture_output=True, text=True, check=False
    )
    assert said.stdout.split() == ["41", "43"], said.stderr
    assert counter.increment() == 44


def test_ray_40_an_agreed_identity_is_wanted(client: _ClusterClient, cluster: RayCluster) -> None:
    client.create_actor(Counter, name="counter", resources=SMALL)
    strange = variables(cluster, FRAY_CLUSTER_TOKEN="wrong")
    said = subprocess.run(
        [sys.executable, "-c", _PLAIN], env=strange, capture_output=True, text=True, check=False
    )
    assert said.returncode
    assert "AccessDeniedError" in said.stderr
    assert cluster.reach().token not in said.stderr + repr(cluster.reach())


@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here")
def test_ray_40_a_go_program_calls(client: _ClusterClient, cluster: RayCluster, tmp_path: Path) -> None:
    program = tmp_path / "caller"
    here = Path(__file__).parent / "testdata" / "caller"
    subprocess.run(["go", "build", "-o", str(program), str(here / "main.go")], cwd=ROOT, check=True)
    counter = client.create_actor(Counter, 40, name="counter", resources=SMALL)
    assert go(program, "counter", variables(cluster)) == ["41", "42", "43"]
    assert counter.increment() == 44
    client.delete_actor(counter)
    said = subprocess.run(
        [str(program), "counter", "1"], env=variables(cluster), capture_output=True, text=True, check=False
    )
    assert 'actor "counter" was deleted' in said.stderr


def go(program: Path, name: str, environ: Mapping[str, str]) -> list[str]:
    said = subprocess.run([str(program), name, "3"], env=environ, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    return said.stdout.split()


def registry_of(cluster: RayCluster) -> int:
    """Return the process of the registry."""
    return process_at(cluster.reach().port)


@pytest.mark.short
def test_a_killed_registry_loses_nothing(client: _ClusterClient, cluster: RayCluster) -> None:
    counter = client.create_actor(Counter, name="counter", resources=SMALL)
    assert counter.increment() == 1
    before = cluster.reach()
    os.kill(registry_of(cluster), signal.SIGKILL)
    assert counter.increment() == 2, "calls do not pass through the registry"
    assert client.get_actor("counter").increment() == 3
    assert job_of(cluster).attempt == 1
    assert until(cluster.reach) == before, "programs that knew its address and token do not find it"
    said = subprocess.run(
        [sys.executable, "-c", _PLAIN], env=variables(cluster), capture_output=True, text=True, check=False
    )
    assert said.stdout.split() == ["4", "6"], said.stderr
    os.kill(process_at(port_of(client)), signal.SIGKILL)  # the new one keeps the actor, too
    until(lambda: job_of(cluster).attempt == 2)
    assert counter.increment() == 1


def port_of(client: _ClusterClient) -> int:
    (endpoint,) = client.cluster.metadata.lookup_all("counter")
    return int(endpoint.address.rpartition(":")[2])


def test_an_actor_that_dies_while_there_is_no_registry(client: _ClusterClient, cluster: RayCluster) -> None:
    counter = client.create_actor(
        Counter, name="counter", resources=SMALL, options=ActorOptions(max_restarts=0)
    )
    actor = process_at(port_of(client))
    os.kill(registry_of(cluster), signal.SIGKILL)
    os.kill(actor, signal.SIGKILL)
    error = until(lambda: death_of(counter))  # a call may find the connection broken before that is known
    assert "has failed for good" in str(error)
    assert (job_of(cluster).attempt, job_of(cluster).failures) == (1, 1)


def death_of(actor: Any) -> errors.ActorDeadError | None:
    """Return how a call ends of an actor that is dead, None as long as that is not known."""
    error = actor.increment.remote().exception(PATIENCE)
    return error if isinstance(error, errors.ActorDeadError) else None


def test_a_watch_goes_on_when_the_registry_has_died(client: _ClusterClient, cluster: RayCluster) -> None:
    seen: list[str] = []
    watch: Any = cluster.metadata.watch("counter")

    def follow() -> None:
        for changes in watch:
            seen.extend(each.name for each in changes.added)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    os.kill(registry_of(cluster), signal.SIGKILL)
    client.create_actor(Counter, name="counter", resources=SMALL)
    until(lambda: seen)
    began = time.monotonic()
    watch.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert time.monotonic() - began < PATIENCE


_DRIVER = """
import sys
sys.path.insert(0, {here!r})
import ray_actors
from fray.cluster.ray import RayCluster
from fray.v2 import ActorOptions, ResourceConfig
from fray.v2.client import _ClusterClient
client = _ClusterClient(RayCluster({address!r}, namespace={namespace!r}))
small = ResourceConfig(cpu=0.1, ram="8m")
client.create_actor(ray_actors.Counter, name="goes", resources=small)
stays = ActorOptions(lifetime="detached")
client.create_actor(ray_actors.Counter, name="stays", resources=small, options=stays)
print("there", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("how", ["ends", "is killed"])
def test_lifetimes_and_adoption(client: _ClusterClient, cluster: RayCluster, nodes: Any, how: str) -> None:
    program = _DRIVER.format(
        here=str(Path(__file__).parent), address=nodes.address, namespace=cluster.namespace
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as driver:
        said = driver.stdout
        assert said is not None
        until(lambda: said.readline().strip() == "there")
        assert client.get_actor("goes").increment() == 1
        if how == "is killed":
            driver.kill()
        else:
            driver.communicate("\n")
    until(lambda: job_of(cluster, "goes").status.ended)
    with pytest.raises(ActorNotFoundError, match=r"was deleted: .*the end of the client that launched it"):
        client.cluster.metadata.lookup("goes")
    assert client.get_actor("stays").increment() == 1, "a driver that comes back finds it by its name"
    client.delete_actor("stays")
