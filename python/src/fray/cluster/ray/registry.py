"""The registry of a namespace: one named, detached Ray actor on the head, which knows its jobs and actors.

It composes `job_table` (jobs) and keeps what must outlive its process in Ray's key-value store, so that Ray
may restart it at any time. Each living job has a supervisor, see `supervisor`: the registry makes it, has it
run, has it run again when Ray has restarted it, and ends it when the job has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from fray.cluster.ray import places
from fray.cluster.ray.actors.launcher import RayLauncher
from fray.cluster.ray.actors.side import ActorSide
from fray.cluster.ray.alternatives import settled
from fray.cluster.ray.demand import demand_of
from fray.cluster.ray.host import payload_of, remote_class, value_of
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.journal import Journal
from fray.cluster.ray.logs import Chunk, LogTable
from fray.cluster.ray.naming import supervisor_name
from fray.cluster.ray.nodes import Nodes
from fray.cluster.ray.pending import reasons
from fray.cluster.ray.places import names_of
from fray.cluster.ray.placing import alone, lost_with_place, supervisor_options
from fray.cluster.ray.records import PROTOCOL, Job, Launch, Place, Started, TaskEnd
from fray.cluster.ray.sharing import SharedGroups
from fray.cluster.ray.store import Store
from fray.cluster.ray.transitions import backoff
from fray.cluster.types import JobId, JobInfo, JobStatus, Namespace, TaskState

_LOOK = 1.0  # seconds between two readings of the node table
_SLACK = 30.0  # seconds beyond its grace that a job gets to end
_LOST = 1.0  # seconds that a supervisor gets to end whose place was lost: it has most likely ended with it
_AGAIN = 0.5  # seconds before a supervisor that cannot be reached is asked again
_SUPERVISOR = "fray.cluster.ray.supervisor:Supervisor"
_log = logging.getLogger("fray")


class Registry:
    """Answers clients and supervisors. All of it runs in one event loop, so that each change is atomic."""

    def __init__(self, namespace: str, package: str, name: str) -> None:  # noqa: ARG002
        import ray

        self._ray = ray
        self._package = package
        self._store = Store(namespace)
        self._journal = Journal(self._store)
        self._jobs = JobTable(Namespace(namespace), self._changed, self._journal.together)
        self._jobs.load(self._journal.jobs())
        self._groups = SharedGroups(ray, self._jobs)
        self._logs = LogTable(self._store)
        self._nodes = Nodes()
        self._waiting = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[JobId] = set()
        self._loaded = False
        self._actors: ActorSide | None = None  # from `_resume` on

    def _changed(self, job: Job) -> None:
        self._journal.put(job)
        for sha256 in self._jobs.unused(job):
            self._store.delete_blob(sha256)
        if self._actors is not None:
            self._actors.changed(job)
        self._spawn(self._notify())

    async def _notify(self) -> None:
        async with self._waiting:
            self._waiting.notify_all()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("the registry could not finish what it began", exc_info=task.exception())

    def _resume(self) -> None:
        """Take up the jobs that lived when another process was the registry."""
        if self._loaded:
            return
        self._loaded = True
        self._spawn(self._end_orphans())
        launcher = RayLauncher(self._ray, self._jobs.namespace, self._nodes)
        self._actors = ActorSide(self._store, self._jobs, launcher, self._stop_soon, self._attempt_over)
        self._spawn(self._actors.serve(self._ray.util.get_node_ip_address()))
        self._spawn(self._groups.make(self._jobs.living()))
        for job in self._jobs:
            if job.status is JobStatus.STOPPED and job.draining and not job.hosted:
                self._spawn(self._end_supervisor(job))
            elif not job.over:
                self._watch(job.job_id)
                self._spawn(self._give_up(job.job_id))
        self._spawn(self._watch_nodes())

    async def _end_orphans(self) -> None:
        """End supervisors, and remove placement groups, of jobs that ended as the registry's process did."""
        named = await asyncio.to_thread(self._ray.util.list_named_actors, all_namespaces=True)
        names = {each["name"] for each in named if each["namespace"] == self._jobs.namespace}
        for job in self._jobs:
            if job.over and supervisor_name(job.job_id) in names:
                self._remove_places(job)
                await self._leave(job)

    # For clients

    async def hello(self) -> int:
        """Return the protocol."""
        self._resume()
        return PROTOCOL

    async def missing(self, blobs: Sequence[str]) -> list[str]:
        """Return which of these blobs are not stored."""
        return [sha256 for sha256 in blobs if not self._store.has_blob(sha256)]

    async def launch(
        self, launches: Sequence[Launch], group: str, request_id: str, small: Mapping[str, bytes]
    ) -> tuple[list[JobId], list[str]]:
        """Start jobs, all or none; the same answer to a request that is made again.

        `small` are blobs that come with it.

        Returns:
            Their ids, or none and the blobs that have to be stored before.
        """
        self._resume()
        for sha256 in await self.missing(list(small)):
            self._store.put_small(sha256, small[sha256])
        if any(launch.request.resources.alternatives for launch in launches):
            await self._nodes.refresh(_LOOK)
            launches = [settled(launch, self._nodes.known) for launch in launches]
        wanted = list(dict.fromkeys(blob for launch in launches for blob in launch.blobs))
        while True:
            lacking = await self.missing(wanted)  # each time: a job that gives way takes its blobs with it
            if lacking:
                return [], lacking
            ids, new, clashing = self._jobs.launch(launches, group, request_id, time.time())
            if not clashing:
                break
            for job in clashing:
                await self.stop(job.job_id, "another job takes its name")
            await self._until(lambda: all(self._jobs.job(job.job_id).over for job in clashing), None)  # noqa: B023
        self._spawn(self._groups.make(new))
        for job in new:
            self._watch(job.job_id)
            self._spawn(self._give_up(job.job_id))
        for job in self._jobs.old():
            self._store.delete("job", job.job_id)
            self._logs.drop(job.job_id)
        return ids, []

    async def _give_up(self, job_id: JobId) -> None:
        """End a job that has not started in the time that its request allows."""
        job = self._jobs.job(job_id)
        seconds = job.launch.request.scheduling_timeout_seconds
        if seconds is None:
            return
        await asyncio.sleep(max(0.0, job.submitted_at + seconds - time.time()))
        job = self._jobs.job(job_id)
        if job.status is JobStatus.PENDING and not job.attempts:
            why = (await self._infos([job]))[0].reason
            job = self._jobs.fail(job_id, f"it could not start in {seconds} s: {why}", None, time.time())
            self._ended(job)
            self._kill(job)

    async def info(self, job_id: JobId) -> JobInfo:
        """Return how a job stands."""
        self._resume()
        return (await self._infos([self._jobs.job(job_id)]))[0]

    async def places(self, job_id: JobId) -> tuple[Place, ...]:
        """Return where the tasks of the attempt run that is under way, with the ids of their Ray nodes."""
        return self._jobs.job(job_id).places

    async def list_jobs(self) -> list[JobInfo]:
        """Return all jobs that are known, by name."""
        self._resume()
        return await self._infos(
            sorted(self._jobs, key=lambda job: (job.launch.request.name, job.submitted_at))
        )

    async def _infos(self, jobs: Sequence[Job]) -> list[JobInfo]:
        if any(job.status is JobStatus.PENDING for job in jobs):
            await self._nodes.refresh(_LOOK)
        return [
            job.info(self._groups.reasons(job) or reasons(job, self._nodes.known))
            if job.status is JobStatus.PENDING
            else job.info()
            for job in jobs
        ]

    async def wait(self, job_ids: Sequence[JobId], seconds: float) -> list[JobInfo]:
        """Return how jobs stand once one of them is over, or after some time."""
        self._resume()
        jobs = [self._jobs.job(job_id) for job_id in job_ids]
        await self._until(lambda: any(self._jobs.job(job_id).over for job_id in job_ids), seconds)
        jobs = [self._jobs.job(job_id) for job_id in job_ids]
        return [job.info() for job in jobs if job.over]

    async def _until(self, ready: Any, seconds: float | None) -> None:
        async with self._waiting:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._waiting.wait_for(ready), seconds)

    async def stop(self, job_id: JobId, reason: str) -> None:
        """End a job and those that it launched."""
        self._resume()
        before = self._jobs.job(job_id)
        job = self._jobs.stop(job_id, reason, time.time())
        if not before.status.ended:
            self._ended(job)
        self._spawn(self._end_supervisor(job))

    async def read_log(self, job_id: JobId, after: int, seconds: float) -> tuple[list[Chunk], bool]:
        """Return what a job has written after a number of chunks, and whether that is all for good."""
        self._resume()
        self._jobs.job(job_id)

        def ready() -> bool:
            return self._logs.count(job_id) > after or self._jobs.job(job_id).over

        await self._until(ready, seconds)
        over = self._jobs.job(job_id).over
        return self._logs.after(job_id, after), over

    async def actors(self, method: str, *args: Any) -> Any:
        """Call a method of the part that is about actors, see ActorSide."""
        self._resume()
        assert self._actors is not None
        return await self._actors.call(method, *args)

    def _attempt_over(self, job: Job) -> None:
        """End what an attempt has launched that its keeper has ended."""
        self._followed(job)

    def _stop_soon(self, job_id: JobId, reason: str) -> None:
        self._spawn(self.stop(job_id, reason))

    # For supervisors

    async def begin(self, job_id: JobId, holder: str, seats: Sequence[Place]) -> Started | None:
        """Begin an attempt, the start fence; None: the job is not wanted."""
        self._resume()
        assert self._actors is not None
        started = self._jobs.begin(job_id, holder, seats, time.time())
        return self._actors.equipped(self._jobs.job(job_id), started) if started else None

    async def is_living(self, job_id: JobId) -> bool:
        """Return whether a job is still to be run."""
        self._resume()
        return any(job.job_id == job_id for job in self._jobs.living())

    async def write_log(self, job_id: JobId, attempt: int, task: int, start: int, data: bytes) -> bool:
        """Keep what a task wrote from a number of bytes on; False: that attempt is over, or the job."""
        if self._jobs.current(job_id, attempt) is None and not self._draining(job_id, attempt):
            return False
        self._logs.write(job_id, attempt, task, start, data)
        await self._notify()
        return True

    def _draining(self, job_id: JobId, attempt: int) -> bool:
        job = self._jobs.job(job_id)
        return job.draining and job.attempt == attempt

    async def wanted(self, job_id: JobId, attempt: int) -> bool:
        """Report whether an attempt is to go on."""
        self._resume()
        return self._jobs.current(job_id, attempt) is not None

    async def alive(self, job_id: JobId) -> bool:
        """Report whether a job has not ended."""
        return not self._jobs.job(job_id).status.ended

    async def finish(self, job_id: JobId, attempt: int, ends: Sequence[TaskEnd]) -> float | None:
        """End an attempt; return after how many seconds another follows, None: none does."""
        self._resume()
        job = self._jobs.finish(job_id, attempt, ends, time.time())
        return self._followed(job) if job else None

    async def lose(self, job_id: JobId, attempt: int, why: str) -> float | None:
        """End an attempt whose place was lost; see `finish`."""
        self._resume()
        job = self._jobs.lose(job_id, attempt, why, time.time())
        return self._followed(job) if job else None

    def _followed(self, job: Job) -> float | None:
        self._end_children(job, f"attempt {job.attempt} of job {job.job_id}, which launched it, has ended")
        if job.status.ended:
            self._ended(job)
            return None
        return backoff(job.failures) if job.attempts[-1].outcome is TaskState.FAILED else 0.0

    def _ended(self, job: Job) -> None:
        self._end_children(job, f"stopped by the end of job {job.job_id}, which launched it")

    def _end_children(self, parent: Job, reason: str) -> None:
        for child in self._jobs.children(parent.job_id):
            self._spawn(self.stop(child.job_id, reason))

    # Supervisors

    def _watch(self, job_id: JobId) -> None:
        if self._jobs.job(job_id).hosted:
            assert self._actors is not None
            self._actors.keep(job_id)
        elif job_id not in self._watched:
            self._watched.add(job_id)
            self._spawn(self._supervise(job_id))

    async def _supervise(self, job_id: JobId) -> None:
        """Have the job's supervisor run it to its end, however often that is lost."""
        problems = self._ray.exceptions
        try:
            while not self._jobs.job(job_id).status.ended:
                job = self._jobs.job(job_id)
                try:
                    handle = await self._supervisor(job)
                    value_of(await handle.call.remote("run", payload_of(job)))
                    if not self._jobs.job(job_id).status.ended:
                        await asyncio.sleep(_AGAIN / 10)  # its attempt was declared lost meanwhile
                except problems.ActorUnavailableError:
                    await asyncio.sleep(_AGAIN)  # Ray restarts it, or the network is back soon
                except problems.ActorDiedError as err:
                    if err.actor_init_failed:
                        self._ended(
                            self._jobs.fail(
                                job_id, f"its supervisor cannot be made: {err}", None, time.time()
                            )
                        )
                        break
                    await asyncio.sleep(_AGAIN)
                except Exception as err:
                    _log.warning("job %s: its supervisor failed: %r", job_id, err)
                    await asyncio.sleep(_AGAIN)
            job = self._jobs.job(job_id)
            if job.status is not JobStatus.STOPPED:  # whose end its stop awaits
                self._remove_places(job)
                self._jobs.drained(job_id)
                await self._leave(job)
        finally:
            self._watched.discard(job_id)

    async def _supervisor(self, job: Job) -> Any:
        if job.launch.request.resources.regions:
            await self._nodes.refresh(_LOOK)
        options = {
            "name": supervisor_name(job.job_id),
            "namespace": job.namespace,
            "lifetime": "detached",
            "get_if_exists": True,
            "max_restarts": -1,
            "max_concurrency": 16,
            **supervisor_options(job, self._nodes.known),
        }
        made = remote_class(self._ray, job.namespace, job.launch.package, _SUPERVISOR)
        return made.options(**options).remote()

    def _kill(self, job: Job) -> None:
        with contextlib.suppress(ValueError):  # it has gone
            supervisor = self._ray.get_actor(supervisor_name(job.job_id), namespace=job.namespace)
            self._ray.kill(supervisor, no_restart=True)
        self._remove_places(job)

    async def _leave(self, job: Job) -> None:
        """End the supervisor of a job in order, by force if it does not answer.

        One that was lost with its node would take the place of another job once Ray has restarted it.
        """
        problems = self._ray.exceptions
        patience = _LOST if lost_with_place(job) else _SLACK
        try:
            handle = self._ray.get_actor(supervisor_name(job.job_id), namespace=job.namespace)
            await asyncio.wait_for(_awaited(handle.leave.remote()), patience)
        except (ValueError, problems.ActorDiedError):
            return
        except Exception as err:
            _log.warning("job %s: its supervisor is killed, as it did not end: %r", job.job_id, err)
        self._kill(job)

    def _remove_places(self, job: Job) -> None:
        if alone(job):
            return
        names = names_of(job.job_id, demand_of(job.launch.request))
        if job.shared and not any(
            other.shared and other.shared.name == job.shared.name for other in self._jobs.living()
        ):
            names.append(job.shared.name)
        places.remove(self._ray, names)
        self._spawn(self._remove_again(names))

    async def _remove_again(self, names: Sequence[str]) -> None:
        """Remove placement groups that a supervisor was about to make when it was killed."""
        await asyncio.sleep(_LOOK)
        while not places.remove(self._ray, names):
            await asyncio.sleep(_LOOK)

    async def _end_supervisor(self, job: Job) -> None:
        """Have the processes of a job end that was stopped, by force if they take too long."""
        if job.hosted:
            return  # its keeper does
        if not job.draining:
            self._remove_places(job)
            if job.attempts:  # Ray leaks what an actor holds that is killed while it runs
                await self._leave(job)
            else:
                self._kill(job)
            return
        try:
            handle = self._ray.get_actor(supervisor_name(job.job_id), namespace=job.namespace)
            reply = handle.call.remote("stop", payload_of(job.attempt, job.grace))
            value_of(await asyncio.wait_for(_awaited(reply), job.grace + _SLACK))
        except Exception as err:  # it has gone, or goes below: those that wait for the job are not to hang
            _log.info("job %s: its supervisor did not stop in order: %r", job.job_id, err)
        self._remove_places(job)
        self._jobs.drained(job.job_id)
        await self._leave(job)

    async def _watch_nodes(self) -> None:
        """End attempts whose nodes are dead in Ray's table, which often knows before their calls fail."""
        while True:
            await asyncio.sleep(_LOOK)
            running = [job for job in self._jobs.living() if job.running]
            if not running:
                continue
            try:
                await self._nodes.refresh(_LOOK / 2)
            except Exception as err:  # Ray answers again later
                _log.warning("the nodes of the cluster cannot be read: %r", err)
                continue
            for job in running:
                why = self._nodes.loss(job.places)
                if why:
                    await self.lose(job.job_id, job.attempt, why)


async def _awaited(reference: Any) -> bytes:
    value: bytes = await reference
    return value
