"""Reservations of a LocalCluster, where every slice that is asked for is there at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from fray.cluster.types import JobId, Namespace, ReservationConfig, ReservationId, ReservationInfo


@dataclass
class Reservation:
    """Slices between a minimum and a maximum."""

    reservation_id: ReservationId
    config: ReservationConfig
    namespace: Namespace
    parent: JobId | None
    expires_at: float  # Unix time in seconds
    released: bool = False

    def info(self, users: dict[JobId, int]) -> ReservationInfo:
        """Return how it stands, given how many slices each job uses that draws from it.

        It keeps one slice more than is used, up to the maximum, so that jobs that grow see room to.
        """
        used = sum(users.values())
        least, most = self.config.min_resources.replicas, self.config.max_resources.replicas
        allocated = 0 if self.released else min(max(least, used + 1), most)
        slices = replace(self.config.max_resources, preemptible=self.config.preemptible)
        return ReservationInfo(
            reservation_id=self.reservation_id,
            allocated_resources=slices.with_replicas(allocated),
            pending_resources=slices.with_replicas(0),
            jobs=list(users),
            expires_at=self.expires_at if self.config.ttl_seconds < math.inf else math.inf,
            released=self.released,
            free=max(0, allocated - used),
        )
