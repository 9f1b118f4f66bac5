"""RayCluster: a Ray cluster, by calls to the registry that fray keeps there."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

from fray.cluster.check import check_group, check_request
from fray.cluster.context import job_context
from fray.cluster.errors import (
    JobFailedError,
    UnsupportedError,
    WaitTimeoutError,
)
from fray.cluster.ray.actors.client import ClusterActors
from fray.cluster.ray.connection import Connection
from fray.cluster.ray.demand import demand_of, on_each
from fray.cluster.ray.logs import Lines
from fray.cluster.ray.records import Launch
from fray.cluster.ray.ship import Shipper
from fray.cluster.ray.spec import NAMESPACE, Spec, parse
from fray.cluster.types import (
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    Namespace,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
)

_ASK_AGAIN = 25.0  # seconds that one call waits
_UNRESERVED = (
    "Ray holds no slices for jobs to come: placement groups are of one job each; submit the job itself, "
    "which waits for its place, or start a fray cluster for reservations"
)


class RayCluster(ClusterActors):
    """Launches jobs on a Ray cluster, see docs/guides/ray.md.

    Names are unique in a namespace, which is a namespace of Ray's too. The first client makes the registry of
    the namespace, a detached actor on the head node. Jobs outlive the program that launches them, and are
    found again by their names.
    """

    def __init__(
        self, address: str = "auto", *, namespace: str | None = None, timeout: float = 120.0
    ) -> None:
        """Connect to a cluster.

        Args:
            address: "auto" (RAY_ADDRESS, or the cluster of this machine), "HOST:PORT" of the cluster's GCS,
                on one of its nodes, or "ray://HOST:PORT" of its proxy for clients.
            namespace: None: FRAY_NAMESPACE, or "fray".
            timeout: Seconds for which the cluster may be away while a call is made.

        Raises:
            ImportError: Ray is not installed.
            ValueError: the address has another form.
            ClusterUnavailableError: there is no Ray cluster.
            AccessDeniedError: the token is missing or wrong.
            ClusterError: the versions of Ray or Python differ.
        """
        self._connect(parse(f"ray:{address.removeprefix('ray:')}"), namespace, timeout)

    @classmethod
    def from_spec(cls, spec: str) -> RayCluster:
        """Connect to ray:auto, ray:HOST:PORT or ray://HOST:PORT, the forms of FRAY_CLUSTER_SPEC.

        Each may end in ?namespace=NAME; see the constructor.
        """
        parsed = parse(spec)
        cluster = cls.__new__(cls)
        cluster._connect(parsed, parsed.namespace or None, 120.0)
        return cluster

    def _connect(self, spec: Spec, namespace: str | None, timeout: float) -> None:
        chosen = namespace or os.environ.get("FRAY_NAMESPACE", "") or NAMESPACE
        self._connection = Connection(spec, chosen, timeout)
        self._connection.check()
        self._calls = self._connection.calls
        self._shipper = Shipper(self._connection)

    # Jobs

    def launch(self, request: JobRequest) -> JobId:
        """Start a job, see Cluster.launch."""
        check_request(request)
        return self._launch([request], "")[0]

    def launch_group(
        self,
        requests: Sequence[JobRequest],
        group: JobGroupConfig,
        reservation_id: ReservationId | None = None,
    ) -> list[JobId]:
        """Start jobs together, all or none, see Cluster.launch_group."""
        check_group(requests, group)
        if reservation_id is not None:
            raise UnsupportedError(_UNRESERVED)
        _check_hosts(requests)
        return self._launch(
            [replace(r, namespace=r.namespace or group.namespace) for r in requests], group.name
        )

    def _launch(self, requests: Sequence[JobRequest], group: str) -> list[JobId]:
        request_id = uuid.uuid4().hex
        launches: list[Launch] = []
        try:
            for request in requests:
                launches.append(self._shipper.launch(request))
            while True:
                small = self._shipper.small(launches)
                ids, lacking = self._calls.call("launch", launches, group, request_id, small)
                if not lacking:
                    return [JobId(each) for each in ids]
                self._shipper.send(lacking)
        finally:
            self._shipper.forget(launches)

    def poll(self, job_id: JobId) -> JobInfo:
        """Return how a job stands, see Cluster.poll."""
        info: JobInfo = self._calls.call("info", job_id)
        return info

    def terminate(self, job_id: JobId) -> None:
        """End a job and all that it launched, see Cluster.terminate."""
        context = job_context()
        who = f"job {context.job_id}" if context is not None else "a client"
        self._calls.call("stop", job_id, f"stopped by {who}")

    def list_jobs(self) -> list[JobInfo]:
        """Return the jobs of the namespace by name, ended ones too, see Cluster.list_jobs."""
        return list(self._calls.call("list_jobs"))

    @overload
    def wait(
        self, job_id: JobId, raise_on_failure: bool = False, *, timeout: float | None = None
    ) -> JobInfo: ...
    @overload
    def wait(
        self,
        job_id: list[JobId] | tuple[JobId, ...],
        raise_on_failure: bool = False,
        *,
        timeout: float | None = None,
    ) -> list[JobInfo]: ...
    def wait(
        self,
        job_id: JobId | Sequence[JobId],
        raise_on_failure: bool = False,
        *,
        timeout: float | None = None,
    ) -> JobInfo | list[JobInfo]:
        """Block until a job, or each of several, has ended, see Cluster.wait."""
        ids = [JobId(job_id)] if isinstance(job_id, str) else list(job_id)
        until = None if timeout is None else time.monotonic() + timeout
        ended: dict[JobId, JobInfo] = {}
        while living := [each for each in dict.fromkeys(ids) if each not in ended]:
            left = _ASK_AGAIN if until is None else until - time.monotonic()
            seconds = min(max(left, 0), _ASK_AGAIN)
            for info in self._calls.call("wait", living, seconds, waits=seconds):
                ended[info.job_id] = info
            failed = [ended[i] for i in ids if i in ended and ended[i].status is not JobStatus.SUCCEEDED]
            if failed and raise_on_failure:
                raise JobFailedError(failed)
            if until is not None and time.monotonic() >= until and len(ended) < len(set(ids)):
                names = ", ".join(each for each in ids if each not in ended)
                raise WaitTimeoutError(f"{names} had not ended after {timeout} s")
        infos = [ended[each] for each in ids]
        return infos[0] if isinstance(job_id, str) else infos

    def monitor(self, job_id: JobId) -> JobInfo:
        """Print what a job writes, from its first attempt on, until it has ended, see Cluster.monitor."""
        after, over = 0, False
        lines: Lines | None = None
        while not over:
            chunks, over = self._calls.call("read_log", job_id, after, _ASK_AGAIN, waits=_ASK_AGAIN)
            for chunk in chunks:
                if lines is None:
                    lines = Lines(prefixed=len(self.poll(job_id).tasks) > 1)
                sys.stdout.write(lines.text(chunk))
                sys.stdout.flush()
                after = chunk.number + 1
        return self.wait(job_id)

    # Reservations

    def create_reservation(self, config: ReservationConfig) -> ReservationId:
        """Refuse: Ray has none.

        Raises:
            UnsupportedError: always.
        """
        del config
        raise UnsupportedError(_UNRESERVED)

    def release_reservation(self, reservation_id: ReservationId) -> None:
        """Refuse, see create_reservation."""
        del reservation_id
        raise UnsupportedError(_UNRESERVED)

    def get_reservation(self, reservation_id: ReservationId) -> ReservationInfo:
        """Refuse, see create_reservation."""
        del reservation_id
        raise UnsupportedError(_UNRESERVED)

    # The connection

    @property
    def namespace(self) -> Namespace:
        """The scope of names of this connection."""
        return Namespace(self._connection.namespace)


def _check_hosts(requests: Sequence[JobRequest]) -> None:
    """Raise UnsupportedError for groups with slices of several hosts, which Ray reserves one by one."""
    for i, request in enumerate(requests):
        if any(demand_of(on).hosts > 1 for on in on_each(request)):
            raise UnsupportedError(
                f"requests[{i}].resources: a group on a Ray cluster has no slices of several hosts, as Ray "
                "cannot reserve all of them or none; launch that job alone"
            )
