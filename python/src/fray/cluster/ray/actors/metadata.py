"""The registry of actors as seen from a process that is connected to Ray: calls of the registry actor."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fray.cluster.context import job_context
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.host import payload_of, value_of
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, Namespace
from fray.cluster.watch import Ending, Watch

if TYPE_CHECKING:
    from fray.cluster.ray.actors.endpoint_registry import Poll
    from fray.cluster.ray.actors.endpoint_table import Selection

_POLL = 30.0  # seconds that one call waits for changes


class RayMetadata:
    """Names of actors and where they listen, see fray.cluster.Metadata."""

    def __init__(self, calls: Calls, namespace: Namespace) -> None:
        self._calls, self._namespace = calls, namespace

    @property
    def namespace(self) -> Namespace:
        """The scope of the names."""
        return self._namespace

    def register(
        self,
        name: str,
        address: str,
        job_id: JobId,
        metadata: Mapping[str, str] | None = None,
        *,
        actor_id: ActorId | None = None,
        unique: bool = False,
        ttl: float | None = None,
        task: int | None = None,
    ) -> ActorId:
        """Make an endpoint known, see Metadata.register. A program outside of jobs has "" as its job."""
        context = job_context()
        if task is None:
            task = context.task_index if context else 0
        made = actor_id or ActorId(f"actor-{secrets.token_hex(13)}")  # so that a second try changes nothing
        endpoint = ActorEndpoint(made, name, address, job_id, self._namespace, dict(metadata or {}), task)
        attempt = context.attempt if context is not None and context.job_id == job_id else 0
        return ActorId(self._call("register", self._namespace, endpoint, unique, ttl, attempt))

    def unregister(self, actor_id: ActorId) -> None:
        """Forget an endpoint."""
        self._call("unregister", [actor_id])

    def lookup(self, name: str) -> ActorEndpoint:
        """Return the newest endpoint of a name."""
        return self.lookup_of_job(name, "")

    def lookup_of_job(self, name: str, job_id: str) -> ActorEndpoint:
        """Return the newest endpoint of a name, of those that a job hosts; "": of any."""
        found: ActorEndpoint = self._call("lookup", self._namespace, name, job_id)
        return found

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        """Return all endpoints of a name."""
        return list(self._call("lookup_all", self._namespace, name))

    def list_actors(self, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so."""
        return list(self._call("list_actors", self._namespace, prefix))

    def _call(self, method: str, *args: Any) -> Any:
        return self._calls.call("actors", method, *args)

    def watch(self, name: str = "", prefix: str = "", *, job_id: JobId | None = None) -> Watch:
        """Yield what is there, then what changes. After the registry has restarted it begins anew."""
        from fray.cluster.ray.actors.endpoint_table import Selection  # which hosts of actors do without

        # What goes on refers to the connection alone, so that it ends when its cluster is gone.
        calls, wanted = self._calls, Selection(self._namespace, name, prefix)

        def changes(ending: Ending) -> Iterator[ActorChanges]:
            boot, version = "", 0
            while not ending.over:
                found = _polled(calls, ending, wanted, boot, version, job_id or "")
                if found is None:
                    return
                boot, version = found.boot, found.version
                if found.changes is not None:
                    yield found.changes

        return Watch(changes)


def _polled(
    calls: Calls, ending: Ending, wanted: Selection, boot: str, version: int, job_id: str
) -> Poll | None:
    """Return what the registry answers to one poll; None: the watch has ended meanwhile."""
    import ray

    problems = (ray.exceptions.RayError, ray.exceptions.RpcError, OSError, ValueError)
    while not ending.over:
        try:
            payload = payload_of("poll", wanted, boot, version, _POLL, job_id)
            answer = calls.handle().call.remote("actors", payload).future()
            answered = threading.Event()
            answer.add_done_callback(lambda _, there=answered: there.set())
            ending.wakes(answered.set)
            answered.wait(2 * _POLL)
            if ending.over:
                return None
            reply: bytes = answer.result(timeout=0)  # ray.get might connect this process anew
        except problems:
            calls.call("hello")  # which waits until Ray has restarted it
            boot = ""
            continue
        found: Poll = value_of(reply)
        return found
    return None
