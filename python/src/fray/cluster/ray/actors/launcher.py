"""Starts the hosts of actors on Ray, see keeper.Launcher."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from fray.cluster.ray.actors.keeper import Host, HostLostError, HostUnmadeError
from fray.cluster.ray.demand import HEAD_NODE
from fray.cluster.ray.host import payload_of, remote_class, value_of
from fray.cluster.ray.naming import host_name, hosted
from fray.cluster.ray.nodes import Nodes
from fray.cluster.ray.placing import supervisor_options
from fray.cluster.ray.records import Job, Place, TaskEnd
from fray.cluster.types import JobId, Namespace

_AGAIN = 0.5  # seconds before a host that cannot be reached is asked again
_LEAVING = 5.0  # seconds for the end of a process that has nothing more to do
_REACH = 2.0  # seconds within which a node's raylet takes a connection
_SETTLED = 1.0  # seconds for which a node has to live on: its processes may end shortly before its raylet
_DOUBT = 60.0  # seconds for Ray to find that a node is dead whose raylet cannot be reached
_PAUSE = 0.25  # seconds between two readings of the node table
_OWN_HEAD = "node:__internal_head__"  # a resource that Ray gives the head itself
_SHARE = 0.0001
_HOST = "fray.cluster.ray.actors.host:ActorHost"
_log = logging.getLogger("fray")


class RayHost:
    """The Ray actor of one attempt."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray, self._handle = ray, handle

    async def outcome(self) -> TaskEnd:
        """Return how it ended by itself, see Host."""
        problems = self._ray.exceptions
        while True:
            try:
                end: TaskEnd = value_of(await self._handle.call.remote("run", payload_of()))
            except problems.ActorUnavailableError:
                await asyncio.sleep(_AGAIN)  # the network is back soon, or it has died
            except problems.ActorDiedError as err:
                if err.actor_init_failed:
                    raise HostUnmadeError(str(err)) from err
                raise HostLostError from err
            except (
                problems.RayActorError,
                problems.OutOfMemoryError,
                problems.WorkerCrashedError,
                problems.NodeDiedError,
            ) as err:
                raise HostLostError from err
            except problems.RayError as err:  # by which Ray does not report that the process is gone
                _log.warning("the host of an actor is asked again: %s", err)
                await asyncio.sleep(_AGAIN)
            else:
                return end

    async def stop(self) -> None:
        """Have it finish its calls and end, see Host."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            await self._handle.call.remote("stop", payload_of())

    async def leave(self) -> None:
        """Have its process end in order, see Host."""
        with contextlib.suppress(self._ray.exceptions.RayError, asyncio.TimeoutError):
            await asyncio.wait_for(_awaited(self._handle.leave.remote()), _LEAVING)

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.kill(self._handle, no_restart=True)


async def _awaited(reference: Any) -> None:
    await reference


class RayLauncher:
    """Starts Ray actors."""

    def __init__(self, ray: Any, namespace: Namespace, nodes: Nodes) -> None:
        self._ray, self._namespace, self._nodes = ray, namespace, nodes

    async def start(self, job: Job, attempt: int) -> Host:
        """Return the host of an attempt, which is started unless it lives."""
        wanted = job.launch.request.resources
        if wanted.regions or not wanted.preemptible:
            await self._nodes.refresh(0)
        options = {
            "name": host_name(job.job_id, attempt),
            "namespace": job.namespace,
            "lifetime": "detached",
            "get_if_exists": True,
            "max_restarts": 0,
            "max_concurrency": 16,
            **supervisor_options(job, self._nodes.known),
        }
        resources: Mapping[str, float] = options.get("resources") or {}
        if HEAD_NODE in resources and not self._has(HEAD_NODE):
            options["resources"] = {
                _OWN_HEAD: _SHARE,
                **{k: v for k, v in resources.items() if k != HEAD_NODE},
            }
        made = remote_class(self._ray, self._namespace, job.launch.package, _HOST)
        return RayHost(self._ray, made.options(**options).remote())

    def _has(self, resource: str) -> bool:
        return any(node.alive and resource in node.total for node in self._nodes.known.values())

    def find(self, job: Job, attempt: int) -> Host | None:
        """Return the host of an attempt; None: it does not live."""
        return self._named(job.job_id, attempt)

    def _named(self, job_id: JobId, attempt: int) -> RayHost | None:
        try:
            found = self._ray.get_actor(host_name(job_id, attempt), namespace=self._namespace)
        except ValueError:
            return None
        return RayHost(self._ray, found)

    async def hosts(self) -> list[tuple[JobId, int]]:
        """Return the jobs and attempts of all hosts that there are, see Launcher."""
        named = await asyncio.to_thread(self._ray.util.list_named_actors, all_namespaces=True)
        found = []
        for each in named:
            which = hosted(each["name"])
            if each["namespace"] == self._namespace and which is not None:
                found.append(which)
        return found

    def end(self, job_id: JobId, attempt: int) -> None:
        """End the host of an attempt at once, see Launcher."""
        host = self._named(job_id, attempt)
        if host is not None:
            host.kill()

    async def loss(self, places: Sequence[Place]) -> str:
        """Return why an attempt is lost that had its process there, see Launcher.

        Ray's table may have a node for a while that is gone, so that its raylet is asked too. The answer
        takes a moment: where a machine is taken away, the process may end before the raylet does.
        """
        return await asyncio.to_thread(self._loss, {place.node for place in places})

    def _loss(self, wanted: set[str]) -> str:
        began = time.monotonic()
        while True:
            deaths = {
                str(node["NodeManagerAddress"]): _death_of(node)
                for node in self._ray.nodes()
                if node["NodeID"] in wanted
            }
            for address, why in deaths.items():
                if why:
                    return f"Ray's node {address} died: {why}"
            doubtful = [address for address, why in deaths.items() if why is None]
            elapsed = time.monotonic() - began
            if doubtful and elapsed >= _DOUBT:
                return f"Ray's node {doubtful[0]} cannot be reached"
            if not doubtful and elapsed >= _SETTLED:
                return ""
            time.sleep(_PAUSE)


def _death_of(node: Mapping[str, Any]) -> str | None:
    """Return why a node is gone, "" if it lives; None: that is not known."""
    if not node["Alive"]:
        return node.get("DeathReasonMessage") or "Ray took it off its table"
    address = node["NodeManagerAddress"], node["NodeManagerPort"]
    try:
        socket.create_connection(address, _REACH).close()
    except ConnectionRefusedError:
        return "its raylet has ended"
    except OSError:
        return None
    return ""
