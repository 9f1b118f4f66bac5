"""The part of RayCluster that is about actors."""

from __future__ import annotations

import os

from fray.cluster.attached import attached, close_attached
from fray.cluster.context import job_context
from fray.cluster.errors import UnsupportedError
from fray.cluster.protocols import Metadata
from fray.cluster.ray.actors.identities import Identities
from fray.cluster.ray.actors.metadata import RayMetadata
from fray.cluster.ray.actors.session import RaySession
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.reach import Reach
from fray.cluster.types import JobId, JobInfo, Namespace


class ClusterActors:
    """Finds actors of one namespace, and waits for them."""

    _calls: Calls

    @property
    def namespace(self) -> Namespace:
        """The scope of names of this connection."""
        raise NotImplementedError

    @property
    def metadata(self) -> Metadata:
        """The registry of actors."""
        return RayMetadata(self._calls, self.namespace)

    def await_hosted(self, job_id: JobId, name: str, seconds: float, ended: int) -> tuple[bool, JobInfo]:
        """Return whether a job has registered an actor, and how it stands, once either changes.

        `ended` is how many of its attempts are known to have ended.
        """
        found: tuple[bool, JobInfo] = self._calls.call(
            "actors", "await_hosted", job_id, name, seconds, ended, waits=seconds
        )
        return found

    def session(self) -> str:
        """Return the id of this process's session, with which what it creates may end, see RaySession."""
        if job_context() is not None:
            return ""
        return attached(self, RaySession, lambda: RaySession(self._calls)).id

    def identity_of(self, namespace: str, wait: bool = True) -> str | None:
        """Return the file of what this process shows to actors, see FrayCluster.identity_of."""
        own = os.environ.get("FRAY_ACTOR_IDENTITY", "")
        if own and os.environ.get("FRAY_NAMESPACE", "") in ("", namespace):
            return own
        return attached(self, Identities, lambda: Identities(self._calls)).file(namespace, wait)

    def reach(self) -> Reach:
        """Return how programs without Ray reach the actors of this namespace.

        Raises:
            UnsupportedError: the head's Python lacks what serves them.
        """
        found: Reach | None = self._calls.call("actors", "reach")
        if found is None:
            raise UnsupportedError(
                "the head of the Ray cluster lacks the packages grpcio and cryptography, with which programs "
                "without Ray are served; install fray-ml[ray] there"
            )
        return found

    def identity(self) -> bytes:
        """Return what a program shows to the actors of this namespace: the content of FRAY_ACTOR_IDENTITY."""
        found: bytes = self._calls.call("actors", "identity", self.namespace)
        return found

    def close(self) -> None:
        """End what goes on for this connection. Jobs go on, but for actors that are not detached."""
        close_attached(self)
