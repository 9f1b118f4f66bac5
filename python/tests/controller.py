"""A small controller for tests: the real protocol over real sockets, jobs as real processes."""

from __future__ import annotations

import collections
import hashlib
import itertools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import grpc

from fray import _termination
from fray._pb import cluster_pb2 as pb
from fray._pb import cluster_pb2_grpc, status_pb2
from fray.cluster import TerminationCause

TOKEN = "secret"


@dataclass
class Job:
    info: pb.JobInfo
    request: pb.JobRequest
    log: list[bytes] = field(default_factory=list)
    process: subprocess.Popen[bytes] | None = None

    @property
    def ended(self) -> bool:
        return self.info.status >= pb.JOB_STATUS_SUCCEEDED


class Outages:
    """Calls that fail: how often a method is to, before or after it was carried out."""

    def __init__(self) -> None:
        self.before: collections.Counter[str] = collections.Counter()
        self.after: collections.Counter[str] = collections.Counter()
        self.calls: collections.Counter[str] = collections.Counter()
        self.leaderless = False  # as an agent answers while no controller leads


class Interceptor(grpc.ServerInterceptor):
    def __init__(self, outages: Outages) -> None:
        self.outages = outages

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        method = details.method.rsplit("/", 1)[1]
        self.outages.calls[method] += 1
        if ("authorization", f"Bearer {TOKEN}") not in details.invocation_metadata:
            return _aborting(continuation(details), grpc.StatusCode.UNAUTHENTICATED, "the token is wrong")
        if self.outages.leaderless and ("fray-no-wait", "1") in details.invocation_metadata:
            reason = (("fray-reason", "NO_CONTROLLER"),)
            return _aborting(
                continuation(details), grpc.StatusCode.UNAVAILABLE, "no controller leads", trailing=reason
            )
        if self.outages.before[method] > 0:
            self.outages.before[method] -= 1
            return _aborting(continuation(details), grpc.StatusCode.UNAVAILABLE, "this one does not lead")
        return continuation(details)


def _aborting(
    handler: Any, code: grpc.StatusCode, message: str, trailing: tuple[tuple[str, str], ...] = ()
) -> Any:
    def abort(_: Any, context: grpc.ServicerContext) -> NoReturn:
        context.set_trailing_metadata(trailing)
        context.abort(code, message)

    makers = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }
    make = makers[handler.request_streaming, handler.response_streaming]
    return make(abort, handler.request_deserializer, handler.response_serializer)


class Controller(
    cluster_pb2_grpc.ClusterServicer, cluster_pb2_grpc.MetadataServicer, cluster_pb2_grpc.ClientServicer
):
    """The methods behave as in clusterapi/cluster.proto, as far as tests need it."""

    def __init__(self, directory: Path, runs: bool = False) -> None:
        self.directory, self.runs = directory, runs
        self.outages = Outages()
        self.changed = threading.Condition()
        self.jobs: dict[str, Job] = {}
        self.by_request: dict[str, list[str]] = {}
        self.blobs: dict[str, bytes] = {}
        self.uploaded: list[str] = []
        self.endpoints: dict[str, pb.ActorEndpoint] = {}
        self.reservations: dict[str, pb.ReservationInfo] = {}
        self.break_monitor_after: list[int] = []  # messages, of the streams to come
        self.sessions: collections.Counter[str] = collections.Counter()  # calls that hold each
        self.broken_sessions = 0
        self.refuse_session: Callable[[grpc.ServicerContext], None] = lambda _: None
        self.end_streams = 0  # that are to come, after what is there
        self.lingers = False  # whether jobs that are terminated go on until `end`
        self.awaited = threading.Event()  # whether a client waited for a job
        self.refuse: Callable[[grpc.ServicerContext], None] = lambda _: None
        self.numbers = itertools.count(1)
        self.address = ""
        self.identities: dict[str, str] = {}  # files by namespace, as of fray run

    def serve(
        self, credentials: grpc.ServerCredentials | None = None, address: str = "127.0.0.1:0"
    ) -> grpc.Server:
        server = grpc.server(futures.ThreadPoolExecutor(256), interceptors=[Interceptor(self.outages)])
        cluster_pb2_grpc.add_ClusterServicer_to_server(self, server)
        cluster_pb2_grpc.add_MetadataServicer_to_server(self, server)
        cluster_pb2_grpc.add_ClientServicer_to_server(self, server)
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
        self.address = f"127.0.0.1:{port}"
        server.start()
        return server

    def _done(self, method: str, context: grpc.ServicerContext) -> None:
        """Lose the answer of a call that was carried out, if that is to be."""
        if self.outages.after[method] > 0:
            self.outages.after[method] -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")

    # Jobs

    def Launch(self, request: pb.LaunchRequest, context: grpc.ServicerContext) -> pb.LaunchResponse:
        self.refuse(context)
        ids = self._launch([request.request], request.request_id, "", context)
        self._done("Launch", context)
        return pb.LaunchResponse(job_id=ids[0])

    def LaunchGroup(
        self, request: pb.LaunchGroupRequest, context: grpc.ServicerContext
    ) -> pb.LaunchGroupResponse:
        self.refuse(context)
        ids = self._launch(list(request.requests), request.request_id, request.group.name, context)
        self._done("LaunchGroup", context)
        return pb.LaunchGroupResponse(job_ids=ids)

    def _launch(
        self, requests: list[pb.JobRequest], request_id: str, group: str, context: grpc.ServicerContext
    ) -> list[str]:
        for request in requests:
            for blob in (request.environment.bundle, request.entrypoint.callable.sha256):
                if blob and blob not in self.blobs:
                    context.abort(grpc.StatusCode.NOT_FOUND, f"the store has no {blob}")
        with self.changed:
            if request_id not in self.by_request:
                for request in requests if self.runs else ():  # where jobs end
                    self._check_name(request, context)
                self.by_request[request_id] = [
                    self._kept(request) or self._start(request, group) for request in requests
                ]
            return self.by_request[request_id]

    def _living(self, request: pb.JobRequest) -> str:
        for job in self.jobs.values():
            if job.info.name == request.name and job.info.namespace == request.namespace and not job.ended:
                return job.info.job_id
        return ""

    def _kept(self, request: pb.JobRequest) -> str:
        return self._living(request) if request.name_clash == pb.NAME_CLASH_KEEP else ""

    def _check_name(self, request: pb.JobRequest, context: grpc.ServicerContext) -> None:
        living = self._living(request)
        if living and request.name_clash != pb.NAME_CLASH_KEEP:
            text = f'job "{request.name}" lives in namespace {request.namespace} as {living}'
            context.abort(grpc.StatusCode.ALREADY_EXISTS, text)

    def _start(self, request: pb.JobRequest, group: str) -> str:
        info = pb.JobInfo(
            job_id=f"{request.name}-{next(self.numbers)}",
            name=request.name,
            namespace=request.namespace or group or request.name,
            status=pb.JOB_STATUS_RUNNING,
            group=group,
            attempt=1,
        )
        info.tasks.add(index=0, state="running")
        job = self.jobs[info.job_id] = Job(info, request)
        if self.runs:
            threading.Thread(target=self._run, args=[job], daemon=True).start()
        return info.job_id

    def _run(self, job: Job) -> None:
        words = list(job.request.entrypoint.command.words)
        environ = {
            **os.environ,
            **job.request.environment.env_vars,
            "FRAY_JOB_ID": job.info.job_id,
            "FRAY_JOB_NAME": job.info.name,
            "FRAY_NAMESPACE": job.info.namespace,
            "FRAY_CLUSTER_SPEC": f"fray://{self.address}",
            "FRAY_CLUSTER_TOKEN": TOKEN,
            _termination.VARIABLE: str(self.directory / f"{job.info.job_id}.end"),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        if not words:
            sha256 = job.request.entrypoint.callable.sha256
            file = self.directory / sha256
            file.write_bytes(self.blobs[sha256])
            environ["FRAY_CALLABLE"] = str(file)
            words = [sys.executable, "-m", "fray._callable"]
        with self.changed:
            if job.ended:
                return
            process = subprocess.Popen(words, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            job.process = process
        assert process.stdout is not None
        with process.stdout as output:
            for line in output:
                self.write(job.info.job_id, line)
        code = process.wait()
        if not job.ended:
            status = pb.JOB_STATUS_FAILED if code else pb.JOB_STATUS_SUCCEEDED
            self._terminated(job)
            self.finish(job.info.job_id, status, f"exit code {code}" if code else "")

    def _terminated(self, job: Job) -> None:
        end = _termination.read(self.directory / f"{job.info.job_id}.end")
        if end is not None:
            cause = {
                TerminationCause.ACTOR_UNMADE: pb.TERMINATION_CAUSE_ACTOR_UNMADE,
                TerminationCause.ACTOR_INVALID: pb.TERMINATION_CAUSE_ACTOR_INVALID,
                TerminationCause.CALLABLE_REFUSED: pb.TERMINATION_CAUSE_CALLABLE_REFUSED,
                TerminationCause.CALLABLE_INVALID: pb.TERMINATION_CAUSE_CALLABLE_INVALID,
                TerminationCause.PROGRAM_MISSING: pb.TERMINATION_CAUSE_PROGRAM_MISSING,
                TerminationCause.PACKAGE_MISSING: pb.TERMINATION_CAUSE_PACKAGE_MISSING,
                TerminationCause.FINAL: pb.TERMINATION_CAUSE_FINAL,
            }[end.cause]
            end_sent = pb.Termination(cause=cause, message=end.message, type=end.type, trace=end.trace)
            job.info.tasks[0].termination.CopyFrom(end_sent)

    def write(self, job_id: str, data: bytes) -> None:
        with self.changed:
            self.jobs[job_id].log.append(data)
            self.changed.notify_all()

    def finish(self, job_id: str, status: pb.JobStatus.ValueType, reason: str = "") -> None:
        with self.changed:
            job = self.jobs[job_id]
            job.info.status, job.info.reason = status, reason
            self.endpoints = {i: e for i, e in self.endpoints.items() if e.job_id != job_id}
            lines = b"".join(job.log).decode(errors="replace").splitlines()
            job.info.tasks[0].state = "succeeded" if status == pb.JOB_STATUS_SUCCEEDED else "failed"
            job.info.tasks[0].tail.extend(lines[-50:])
            self.changed.notify_all()

    def _job(self, job_id: str, context: grpc.ServicerContext) -> Job:
        if job_id not in self.jobs:
            context.abort(grpc.StatusCode.NOT_FOUND, f'there is no job "{job_id}"')
        return self.jobs[job_id]

    def Poll(self, request: pb.PollRequest, context: grpc.ServicerContext) -> pb.JobInfo:
        return self._job(request.job_id, context).info

    def Wait(self, request: pb.WaitRequest, context: grpc.ServicerContext) -> pb.WaitResponse:
        jobs = [self._job(job_id, context) for job_id in request.job_ids]
        enough = any if request.any else all
        self.awaited.set()
        with self.changed:
            self.changed.wait_for(
                lambda: enough(job.ended for job in jobs), request.timeout.ToNanoseconds() / 1e9
            )
        return pb.WaitResponse(jobs=[job.info for job in jobs])

    def Monitor(
        self, request: pb.MonitorRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.MonitorResponse]:
        job = self._job(request.job_id, context)
        limit = self.break_monitor_after.pop(0) if self.break_monitor_after else -1
        at = int(request.after or b"0")
        context.add_callback(self._wake)
        while context.is_active():
            with self.changed:
                self.changed.wait_for(lambda: len(job.log) > at or job.ended or not context.is_active())
                lines, over = job.log[at:], job.ended
            if self._ends():
                return
            for line in lines:
                if limit == 0:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")
                limit -= 1
                at += 1
                yield pb.MonitorResponse(data=line, cursor=str(at).encode())
            if over and at == len(job.log):
                yield pb.MonitorResponse(job=job.info, cursor=str(at).encode())
                return

    def _wake(self) -> None:
        """Let who serves a stream see that its caller has gone."""
        with self.changed:
            self.changed.notify_all()

    def _ends(self) -> bool:
        self.end_streams -= 1
        return self.end_streams >= 0

    def Terminate(self, request: pb.TerminateRequest, context: grpc.ServicerContext) -> pb.TerminateResponse:
        job = self._job(request.job_id, context)
        if not self.lingers:
            self._end(job)
        return pb.TerminateResponse()

    def _end(self, job: Job) -> None:
        with self.changed:
            if not job.ended:
                self.finish(job.info.job_id, pb.JOB_STATUS_STOPPED, "it was terminated")
                if job.process is not None:
                    job.process.kill()

    def end(self) -> None:
        """End all jobs."""
        with self.changed:
            for job in self.jobs.values():
                self._end(job)

    def ListJobs(self, request: pb.ListJobsRequest, context: grpc.ServicerContext) -> pb.ListJobsResponse:
        found = [job.info for job in self.jobs.values() if job.info.namespace == request.namespace]
        return pb.ListJobsResponse(jobs=sorted(found, key=lambda info: info.name))

    def Upload(
        self, request_iterator: Iterator[pb.UploadRequest], context: grpc.ServicerContext
    ) -> pb.UploadResponse:
        head = next(request_iterator)
        if head.sha256 in self.blobs:
            return pb.UploadResponse(existed=True)
        data = head.data + b"".join(part.data for part in request_iterator)
        if hashlib.sha256(data).hexdigest() != head.sha256 or len(data) != head.size:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "the content is not what was announced")
        self.blobs[head.sha256] = data
        self.uploaded.append(head.sha256)
        self._done("Upload", context)
        return pb.UploadResponse()

    def HoldSession(
        self, request: pb.HoldSessionRequest, context: grpc.ServicerContext
    ) -> Iterator[pb.HoldSessionResponse]:
        self.refuse_session(context)
        context.add_callback(self._wake)
        self.sessions[request.session] += 1
        broken = self.broken_sessions
        yield pb.HoldSessionResponse()
        with self.changed:
            self.changed.wait_for(lambda: not context.is_active() or self.broken_sessions != broken)
        self.sessions[request.session] -= 1
        if context.is_active():
            context.abort(grpc.StatusCode.UNAVAILABLE, "this one does not lead")

    def break_sessions(self) -> None:
        with self.changed:
            self.broken_sessions += 1
            self.changed.notify_all()

    def EndSession(
        self, request: pb.EndSessionRequest, context: grpc.ServicerContext
    ) -> pb.EndSessionResponse:
        for job in list(self.jobs.values()):
            if job.request.session == request.session and not job.request.detached:
                self._end(job)
        return pb.EndSessionResponse()

    # Reservations

    def CreateReservation(
        self, request: pb.CreateReservationRequest, context: grpc.ServicerContext
    ) -> pb.ReservationInfo:
        name = request.config.name or "pool"
        info = pb.ReservationInfo(
            reservation_id=f"{request.config.namespace}/{name}",
            allocated=pb.Resources(
                tpu=request.config.max.tpu,
                gpu=request.config.max.gpu if request.config.max.HasField("gpu") else None,
                slices=request.config.min.slices,
            ),
            config=request.config,
        )
        self.reservations[info.reservation_id] = info
        return info

    def GetReservation(
        self, request: pb.GetReservationRequest, context: grpc.ServicerContext
    ) -> pb.ReservationInfo:
        if request.reservation_id not in self.reservations:
            context.abort(grpc.StatusCode.NOT_FOUND, f'there is no reservation "{request.reservation_id}"')
        info = self.reservations[request.reservation_id]
        running = sum(not job.ended for job in self.jobs.values())
        info.allocated.slices = min(info.config.max.slices, max(info.config.min.slices, running + 1))
        return info

    def ReleaseReservation(
        self, request: pb.ReleaseReservationRequest, context: grpc.ServicerContext
    ) -> pb.ReleaseReservationResponse:
        self.reservations[request.reservation_id].released = True
        return pb.ReleaseReservationResponse()

    def ListReservations(
        self, request: pb.ListReservationsRequest, context: grpc.ServicerContext
    ) -> pb.ListReservationsResponse:
        return pb.ListReservationsResponse(reservations=self.reservations.values())

    def Exec(
        self, request_iterator: Iterator[pb.ExecRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.ExecResponse]:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "tests need none")

    def Identity(self, request: pb.IdentityRequest, context: grpc.ServicerContext) -> pb.IdentityResponse:
        self.refuse(context)
        self._check_namespace(request.namespace, context)
        if request.namespace not in self.identities:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "hosts pass on Cluster and Metadata only")
        return pb.IdentityResponse(file=self.identities[request.namespace])

    def _check_namespace(self, namespace: str, context: grpc.ServicerContext) -> None:
        if not namespace:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "namespace: say which: a user belongs to none")

    # Actors

    def Register(self, request: pb.RegisterRequest, context: grpc.ServicerContext) -> pb.RegisterResponse:
        job = self._job(request.job_id, context)
        with self.changed:
            actor_id = request.actor_id or f"actor-{request.request_id}"
            self.endpoints[actor_id] = pb.ActorEndpoint(
                actor_id=actor_id,
                name=request.name,
                address=request.address,
                job_id=request.job_id,
                namespace=job.info.namespace,
                metadata=request.metadata,
            )
            self.changed.notify_all()
        self._done("Register", context)
        return pb.RegisterResponse(actor_id=actor_id)

    def Unregister(
        self, request: pb.UnregisterRequest, context: grpc.ServicerContext
    ) -> pb.UnregisterResponse:
        with self.changed:
            self.endpoints.pop(request.actor_id, None)
            self.changed.notify_all()
        return pb.UnregisterResponse()

    def Lookup(self, request: pb.LookupRequest, context: grpc.ServicerContext) -> pb.ActorEndpoint:
        found = self.LookupAll(request, context).actors
        if not found:
            self._missing(request, context)
        return found[-1]

    def _missing(self, request: pb.LookupRequest, context: grpc.ServicerContext) -> NoReturn:
        """Report that there is no actor, and why, as far as its jobs have that."""
        death, name = "", f'"{request.name}"'
        for job in self.jobs.values():
            if name in job.request.environment.env_vars.get("FRAY_ACTOR_NAMES", ""):
                death = f"actor {name} was deleted: job {job.info.job_id} was {job.info.reason}"
                if not job.ended:
                    death = ""
        detail = pb.ActorNotFound(name=request.name, namespace=request.namespace, death=death)
        details = status_pb2.Status(code=5, message=f"no actor {name}")
        details.details.add(
            type_url="type.googleapis.com/fray.cluster.v1.ActorNotFound"
        ).value = detail.SerializeToString()
        context.set_trailing_metadata((("grpc-status-details-bin", details.SerializeToString()),))
        context.abort(grpc.StatusCode.NOT_FOUND, details.message)

    def LookupAll(self, request: pb.LookupRequest, context: grpc.ServicerContext) -> pb.ListActorsResponse:
        self._check_namespace(request.namespace, context)
        found = [e for e in self.endpoints.values() if e.name == request.name]
        return pb.ListActorsResponse(actors=[e for e in found if e.namespace == request.namespace])

    def ListActors(
        self, request: pb.ListActorsRequest, context: grpc.ServicerContext
    ) -> pb.ListActorsResponse:
        self._check_namespace(request.namespace, context)
        found = [e for e in self.endpoints.values() if e.name.startswith(request.prefix)]
        return pb.ListActorsResponse(actors=[e for e in found if e.namespace == request.namespace])

    def Watch(self, request: pb.WatchRequest, context: grpc.ServicerContext) -> Iterator[pb.WatchResponse]:
        self._check_namespace(request.namespace, context)
        known: set[str] = set()
        reset = True
        context.add_callback(self._wake)

        def wanted() -> dict[str, pb.ActorEndpoint]:
            of_space = {i: e for i, e in self.endpoints.items() if e.namespace == request.namespace}
            if request.name:
                return {i: e for i, e in of_space.items() if e.name == request.name}
            return {i: e for i, e in of_space.items() if e.name.startswith(request.prefix)}

        while context.is_active():
            with self.changed:
                self.changed.wait_for(lambda: reset or set(wanted()) != known or not context.is_active())
                now = wanted()
            yield pb.WatchResponse(
                reset=reset, added=[now[i] for i in now if i not in known], removed=sorted(known - set(now))
            )
            known, reset = set(now), False
            if self._ends():
                return
            if self.outages.after["Watch"] > 0:
                self._done("Watch", context)
