"""Which of an actor's endpoints its calls go to, and which one failed last.

Where actors are is left to directories, and connecting and sending to `_calling.route`.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from fray.cluster.errors import ClusterError
from fray.rpc._calling.resolve import Endpoint, Fate
from fray.rpc.errors import ActorDeadError, ActorError, StaleError, UnavailableError, UnknownActorError

if TYPE_CHECKING:
    from fray.rpc._calling.resolve import Directory, Fate

_FIRST, _LONGEST = 0.02, 1.0  # seconds between two tries
_FORGIVEN = 5.0  # seconds after which a failure does not delay the next try any more
_LAG = 0.5  # seconds by which a registry may know later than a server


class Target:
    """The actor of a route. Failures are noted by the route's thread alone."""

    def __init__(self, directory: Directory, name: str, prefer: Endpoint | None, pinned: bool) -> None:
        """Make the target of a name; `prefer` and `pinned` are as for Route."""
        self.directory, self.name = directory, name
        self.prefer, self.pinned = prefer, pinned
        self.was_there = False
        """The actor was created, or was found once: if it is gone for good, no other is waited for."""
        self.reset()

    def reset(self) -> None:
        """Forget failures."""
        self._failed: Endpoint | None = None
        self._failed_at = 0.0
        self._pause = _FIRST
        self.error: ActorError | None = None
        """What failed last."""

    @property
    def key(self) -> tuple[object, ...]:
        """What handles of the same actor have in common."""
        place = self.directory.endpoints(self.name)[0].address if not self.directory.namespace else ""
        return self.directory.namespace, self.name, place, self.prefer if self.pinned else None

    def reference(self, last: str) -> tuple[str, str, str, str]:
        """Return the name, the namespace, the URL where the actor was last, and the member of a pinned route.

        What is not known is "". `last` is the address that calls were sent to.
        """
        endpoint = self.known()
        if endpoint is None and last:
            endpoint = Endpoint(self.name, last)
        member = self.prefer.member if self.pinned and self.prefer and self.directory.namespace else ""
        return self.name, self.directory.namespace, endpoint.url if endpoint is not None else "", member

    # Where the actor is

    def known(self) -> Endpoint | None:
        """Return the endpoint to use, of those in memory."""
        found = self._choose(self.directory.known(self.name))
        self.was_there |= found is not None
        return found

    def find(self) -> Endpoint | None:
        """Return the endpoint to use; None: there is none. Raises ClusterError."""
        found = self._choose(self.directory.endpoints(self.name))
        self.was_there |= found is not None
        return found

    def try_find(self) -> Endpoint | None:
        """Return the endpoint to use; None: there is none, or none that is known, see `error`."""
        try:
            return self.find()
        except ClusterError as err:
            self.error = UnavailableError(f"it is not known where the actor is: {err}")
            return None

    def wait(self, timeout: float) -> None:
        """Return when the endpoints may have changed, after `timeout` seconds at the latest."""
        self.directory.wait(self.name, min(_LONGEST, max(0.0, timeout)))

    def _choose(self, endpoints: list[Endpoint]) -> Endpoint | None:
        prefer = self.prefer
        if prefer is not None:
            if self.pinned:
                endpoints = [endpoint for endpoint in endpoints if endpoint.member == prefer.member]
            for endpoint in endpoints:
                if endpoint.address == prefer.address and prefer.incarnation in ("", endpoint.incarnation):
                    return endpoint
        failed = self._failed
        if failed is not None and not self.pinned:
            endpoints = [e for e in endpoints if e.address != failed.address] or endpoints
        return endpoints[-1] if endpoints else None

    def left(self, address: str, incarnation: str) -> bool:
        """Return whether an incarnation is known to have left an address."""
        try:
            found = self.find()
        except ClusterError:
            return False
        if found is None or found.address != address:
            return True
        return bool(found.incarnation) and found.incarnation != incarnation

    def leaves(self, address: str, incarnation: str) -> bool:
        """Return the same, once a registry that knows of moves later than servers has had time to."""
        if not self.left(address, incarnation) and self.directory.namespace:
            self.directory.wait(self.name, _LAG)
        return self.left(address, incarnation)

    def dead(self) -> ActorError | None:
        """Return why the actor, which was not found, will not come back, if so."""
        death = self.directory.fate(self.name, self._job_id).death if self.was_there else ""
        return ActorDeadError(death) if death else None

    @property
    def _job_id(self) -> str:
        """The job that hosts the one of several actors of the name that is meant, "" for any."""
        return self.prefer.place.partition("/")[0] if self.pinned and self.prefer is not None else ""

    @property
    def learns_fate(self) -> bool:
        """Whether it becomes known that the actor is dead for good."""
        return self.directory.knows_fates and bool(self.directory.namespace)

    def verdict(self, incarnation: str) -> Fate:
        """Return what became of an incarnation that was lost: dead, undecided or neither."""
        try:
            found = self._choose(self.directory.endpoints(self.name))
        except ClusterError:
            return Fate(undecided=True)
        if found is not None:
            return Fate(undecided=found.incarnation == incarnation)
        return self.directory.fate(self.name, self._job_id)

    def unknown(self) -> ActorError:
        """Return the error for an actor that is nowhere."""
        return UnknownActorError(self.directory.missing(self.name))

    # What failed

    @property
    def failed(self) -> bool:
        """Whether calls could not be sent to an endpoint, and to none since."""
        return self._failed is not None

    def fail(self, endpoint: Endpoint, error: ActorError) -> None:
        """Note that calls cannot be sent to an endpoint."""
        self._failed, self._failed_at, self.error = endpoint, monotonic(), error

    def note(self, error: ActorError, endpoint: Endpoint | None) -> None:
        """Note that a call came back from an endpoint, which has failed unless another did before."""
        self.error, self._failed_at = error, monotonic()
        if endpoint is not None and self._failed is None:
            self._failed = endpoint

    def forgive(self) -> None:
        """Try an endpoint that failed again."""
        self._failed = None

    def is_failed(self, endpoint: Endpoint) -> bool:
        """Return whether an endpoint failed a short while ago."""
        failed = self._failed
        if failed is None or (not endpoint.incarnation and isinstance(self.error, StaleError)):
            return False
        same = failed.address == endpoint.address and endpoint.incarnation in ("", failed.incarnation)
        if not same or monotonic() - self._failed_at > _FORGIVEN:
            self._failed, self._pause = None, _FIRST
            return False
        return True

    def back_off(self) -> None:
        """Wait for other endpoints, longer each time."""
        self.directory.wait(self.name, self._pause)
        self._pause = min(_LONGEST, 2 * self._pause)
