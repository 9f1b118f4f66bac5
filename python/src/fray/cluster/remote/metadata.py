"""The registry of actors of a fray cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping

from fray._pb import cluster_pb2 as pb
from fray.cluster.context import job_context
from fray.cluster.errors import ActorNotFoundError, NotFoundError
from fray.cluster.remote.connection import PAUSE, Connection
from fray.cluster.remote.convert import changes_of, duration, endpoint_of
from fray.cluster.types import ActorChanges, ActorEndpoint, ActorId, JobId, Namespace
from fray.cluster.watch import Ending, Watch

_UNFOUNDED = (
    "this program has no namespace yet; the first job or reservation that it asks for founds one, "
    "or name one, as by fray run --namespace"
)


class FrayMetadata:
    """Names of actors and where they listen, see fray.cluster.Metadata."""

    def __init__(self, connection: Connection, namespace: Callable[[], Namespace]) -> None:
        """Make a registry; its namespace is asked for whenever it is used."""
        self._connection, self._namespace = connection, namespace

    @property
    def namespace(self) -> Namespace:
        """The scope of the names, see fray.cluster.Metadata."""
        return self._namespace()

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
        wait: bool = True,
    ) -> ActorId:
        """Make an endpoint of this task known; without `wait` once, see Connection.call_now."""
        context = job_context()
        if task is None:
            task = context.task_index if context else 0
        request = pb.RegisterRequest(
            name=name,
            address=address,
            job_id=job_id,
            metadata=dict(metadata or {}),
            task=task,
            unique=unique,
            ttl=None if ttl is None else duration(ttl),
            actor_id=actor_id or "",
            request_id=uuid.uuid4().hex,
        )
        call = self._connection.call if wait else self._connection.call_now
        return ActorId(call(self._connection.metadata.Register, request).actor_id)

    def unregister(self, actor_id: ActorId, *, wait: bool = True) -> None:
        """Forget an endpoint; without `wait` as `register` does."""
        call = self._connection.call if wait else self._connection.call_now
        call(self._connection.metadata.Unregister, pb.UnregisterRequest(actor_id=actor_id))

    def lookup(self, name: str) -> ActorEndpoint:
        """Return the newest endpoint of a name."""
        return self.lookup_of_job(name, "")

    def lookup_of_job(self, name: str, job_id: str) -> ActorEndpoint:
        """Return the newest endpoint of a name, of those that a job hosts; "": of any."""
        if not self._namespace():
            raise ActorNotFoundError(f'there is no actor "{name}": {_UNFOUNDED}')
        try:
            return endpoint_of(
                self._connection.call(self._connection.metadata.Lookup, self._named(name, job_id))
            )
        except ActorNotFoundError:
            raise
        except NotFoundError as err:  # of a controller that adds no details
            raise ActorNotFoundError(str(err)) from err

    def lookup_all(self, name: str) -> list[ActorEndpoint]:
        """Return all endpoints of a name."""
        if not self._namespace():
            return []
        found = self._connection.call(self._connection.metadata.LookupAll, self._named(name))
        return [endpoint_of(actor) for actor in found.actors]

    def list_actors(self, prefix: str = "") -> list[ActorEndpoint]:
        """Return the endpoints whose names begin so."""
        if not self._namespace():
            return []
        request = pb.ListActorsRequest(prefix=prefix, namespace=self._namespace())
        found = self._connection.call(self._connection.metadata.ListActors, request)
        return [endpoint_of(actor) for actor in found.actors]

    def watch(self, name: str = "", prefix: str = "", *, job_id: JobId | None = None) -> Watch:
        """Yield what is there, then what changes. After an interruption it begins anew, with a reset."""
        # What goes on refers to the connection alone, so that it ends when its cluster is gone.
        namespace, connection = self._namespace(), self._connection
        request = pb.WatchRequest(name=name, prefix=prefix, namespace=namespace, job_id=job_id or "")

        def changes(ending: Ending) -> Iterator[ActorChanges]:
            while not ending.over:
                for message in connection.stream(connection.metadata.Watch, lambda: request, ending):
                    yield changes_of(message)
                ending.wait(PAUSE)

        return Watch(changes)

    def _named(self, name: str, job_id: str = "") -> pb.LookupRequest:
        return pb.LookupRequest(name=name, namespace=self._namespace(), job_id=job_id)
