"""Keeps the hosts of actors: starts a Ray actor for each attempt, waits for its end, and starts another.

It runs in the registry actor. What an event makes of a job is decided in `transitions`, and Ray's part is a
`Launcher`. An attempt begins when its process reports in, which is saved before the process does anything, so
that another process of the registry goes on where this one ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from fray.cluster.errors import NotFoundError
from fray.cluster.ray.job_table import JobTable
from fray.cluster.ray.records import Job, Place, TaskEnd
from fray.cluster.ray.transitions import backoff
from fray.cluster.types import JobId, TaskState

_AGAIN = 1.0  # seconds before something that failed is tried again
_LOOK = 1.0  # seconds between two observations of sessions
_SWEEP = 30.0  # seconds between two searches for hosts that are not wanted
_SESSION = 30.0  # seconds without a call that holds it, after which a session has ended
_log = logging.getLogger("fray")


class HostLostError(Exception):
    """The process that hosts an actor is gone, without having reported how it ended."""


class HostUnmadeError(Exception):
    """The process that hosts an actor cannot be made in any attempt; the text has why."""


class Host(Protocol):
    """The process of an attempt, or what is to become it."""

    async def outcome(self) -> TaskEnd:
        """Return how it ended by itself.

        Raises:
            HostLostError: its process died.
            HostUnmadeError: there can be none.
        """
        ...

    async def stop(self) -> None:
        """Have it finish its calls and end."""
        ...

    async def leave(self) -> None:
        """Have its process end in order, once its outcome is known: killed ones may hold on to resources."""
        ...

    def kill(self) -> None:
        """End it at once; one that has ended changes nothing."""
        ...


class Launcher(Protocol):
    """Starts hosts on Ray, and observes its nodes."""

    async def start(self, job: Job, attempt: int) -> Host:
        """Return the host of an attempt, which is started unless it lives."""
        ...

    def find(self, job: Job, attempt: int) -> Host | None:
        """Return the host of an attempt; None: it does not live."""
        ...

    async def hosts(self) -> list[tuple[JobId, int]]:
        """Return the jobs and attempts of all hosts that there are."""
        ...

    def end(self, job_id: JobId, attempt: int) -> None:
        """End the host of an attempt at once; one that is not there changes nothing."""
        ...

    async def loss(self, places: Sequence[Place]) -> str:
        """Return why an attempt is lost that had its process there, "" if its node lives."""
        ...


class ActorKeeper:
    """The processes of jobs that host actors. All methods belong to one event loop."""

    def __init__(
        self,
        table: JobTable,
        launcher: Launcher,
        attempt_ended: Callable[[JobId, int], None],
        stop: Callable[[JobId, str], None],
        attempt_over: Callable[[Job], None] = lambda _: None,
    ) -> None:
        """Take a table.

        Args:
            table: Of the jobs.
            launcher: What starts hosts.
            attempt_ended: Is called when an attempt has ended: its endpoints are void.
            stop: Ends a job, with the reason.
            attempt_over: Is called with the job after an attempt: what that has launched ends.
        """
        self._table, self._launcher = table, launcher
        self._attempt_ended, self._stop_job, self._attempt_over = attempt_ended, stop, attempt_over
        self._changed = asyncio.Event()
        self._reported: dict[tuple[JobId, int], TaskEnd] = {}  # of processes that end by themselves
        self._held: dict[str, float] = {}  # when sessions were held last, by time.monotonic
        self._kept: dict[JobId, asyncio.Future[None]] = {}
        self._observing = asyncio.ensure_future(self._observe())

    def touch(self) -> None:
        """Have jobs that have changed looked at."""
        self._changed.set()
        self._changed = asyncio.Event()

    def keep(self, job_id: JobId) -> None:
        """Run a job that hosts an actor to its end. One that is kept already stays so."""
        if job_id in self._kept:
            return
        session = self._table.job(job_id).launch.request.session
        self._held.setdefault(session, time.monotonic())
        task = self._kept[job_id] = asyncio.ensure_future(self._run(job_id))
        task.add_done_callback(lambda _: self._kept.pop(job_id, None))

    def hold(self, session: str) -> None:
        """Let a session live on for a while."""
        self._held[session] = time.monotonic()

    def end_session(self, session: str) -> None:
        """Have the actors of a session end."""
        self._held.pop(session, None)
        for job in self._table.living():
            request = job.launch.request
            if session and request.session == session and not request.detached:
                self._stop_job(job.job_id, "stopped by the end of the client that launched it")

    def exiting(self, job_id: JobId, attempt: int, end: TaskEnd) -> None:
        """Record how the process of an attempt is about to end."""
        self._reported[job_id, attempt] = end

    # The life of a job

    async def _run(self, job_id: JobId) -> None:
        while not (job := self._table.job(job_id)).over:
            try:
                if job.running or job.draining:
                    await self._resumed(job)
                else:
                    pause = backoff(job.failures) if job.failures > 1 else 0.0
                    await self._until(lambda: self._table.job(job_id).status.ended, pause)
                    await self._started(self._table.job(job_id))
            except Exception:
                _log.exception("the attempt at job %s is tried again", job_id)
                await asyncio.sleep(_AGAIN)

    async def _resumed(self, job: Job) -> None:
        """Carry an attempt to its end that another process of the registry has started."""
        host = self._launcher.find(job, job.attempt)
        if host is None:
            await self._conclude(
                job.job_id, job.attempt, await self._verdict(job.job_id, job.attempt, job.places)
            )
        else:
            await self._attempt(job.job_id, job.attempt, host)

    async def _started(self, job: Job) -> None:
        """Start the next attempt and carry it to its end."""
        if not job.status.ended:
            attempt = job.attempt + 1
            await self._attempt(job.job_id, attempt, await self._launcher.start(job, attempt))

    async def _attempt(self, job_id: JobId, attempt: int, host: Host) -> None:
        ending = asyncio.ensure_future(host.outcome())
        superseded = asyncio.ensure_future(self._until(lambda: self._lost(job_id, attempt)))
        stopping = asyncio.ensure_future(self._stop(job_id, host))
        try:
            await asyncio.wait((ending, superseded), return_when=asyncio.FIRST_COMPLETED)
            if ending.done():
                await self._concluded(job_id, attempt, host, ending)
        finally:
            for each in (ending, superseded, stopping):
                each.cancel()
        # Not where this is cancelled, or the registry's process ends: another one goes on with the host.
        host.kill()
        self._attempt_ended(job_id, attempt)

    async def _concluded(
        self, job_id: JobId, attempt: int, host: Host, ending: asyncio.Future[TaskEnd]
    ) -> None:
        """Record how an attempt ended whose host has."""
        places = self._table.job(job_id).places
        try:
            end = self._reported.pop((job_id, attempt), None) or ending.result()
            await host.leave()
        except HostLostError:
            self._attempt_ended(job_id, attempt)  # at once: the verdict may take long
            end = await self._verdict(job_id, attempt, places)
        except HostUnmadeError as err:
            self._table.fail(job_id, f"its host cannot be made: {err}", None, time.time())
            self._attempt_over(self._table.job(job_id))
            return
        await self._conclude(job_id, attempt, end)

    def _lost(self, job_id: JobId, attempt: int) -> bool:
        """Return whether an attempt has begun and ended for another reason than its process's end."""
        job = self._table.job(job_id)
        return job.attempt >= attempt and not job.draining and self._table.current(job_id, attempt) is None

    async def _conclude(self, job_id: JobId, attempt: int, end: TaskEnd) -> None:
        """Record how an attempt ended, if it ever began."""
        now = time.time()
        self._attempt_ended(job_id, attempt)
        if self._table.job(job_id).status.ended:
            self._table.drained(job_id)
        elif self._table.current(job_id, attempt) is None:
            _log.warning("job %s: its host could not be started: %s", job_id, end.reason)
            await asyncio.sleep(_AGAIN)
        else:
            if end.state is TaskState.PREEMPTED:
                self._table.lose(job_id, attempt, end.reason, now)
            else:
                self._table.finish(job_id, attempt, [end], now)
            self._attempt_over(self._table.job(job_id))

    async def _verdict(self, job_id: JobId, attempt: int, places: Sequence[Place]) -> TaskEnd:
        """Return how an attempt ended whose process is gone."""
        reported = self._reported.pop((job_id, attempt), None)
        if reported is not None:
            return reported
        why = await self._launcher.loss(places)
        if why:
            return TaskEnd(0, TaskState.PREEMPTED, why)
        return TaskEnd(0, TaskState.FAILED, "its process was killed or crashed", exit_code=137)

    async def _stop(self, job_id: JobId, host: Host) -> None:
        """Have a host end once its job has, by force after the grace."""
        await self._until(lambda: self._table.job(job_id).status.ended)
        job = self._table.job(job_id)
        self._attempt_ended(job_id, job.attempt)
        if job.draining:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(host.stop(), job.grace)
            await asyncio.sleep(job.grace)
        host.kill()

    async def _observe(self) -> None:
        """Notice sessions that have ended, and hosts that another process of the registry has left."""
        swept, looked = float("-inf"), time.monotonic()
        while True:
            await asyncio.sleep(_LOOK)
            now = time.monotonic()
            # No client was heard while this process was suspended, or got no processor.
            deaf, looked = max(0.0, now - looked - _LOOK), now
            self._held = {session: min(now, held + deaf) for session, held in self._held.items()}
            if now - swept > _SWEEP:
                swept = now
                await self._sweep()
            for session in [s for s, held in self._held.items() if s and now - held > _SESSION]:
                self.end_session(session)

    async def _sweep(self) -> None:
        try:
            for job_id, attempt in await self._launcher.hosts():
                if not self._wants(job_id, attempt):
                    self._launcher.end(job_id, attempt)
        except Exception:
            _log.exception("the hosts of actors cannot be listed")

    def _wants(self, job_id: JobId, attempt: int) -> bool:
        """Return whether an attempt is to have a host: the one that runs, drains or comes next."""
        try:
            job = self._table.job(job_id)
        except NotFoundError:
            return False
        if job.running or job.draining:
            return attempt == job.attempt
        return not job.status.ended and attempt == job.attempt + 1

    async def _until(self, over: Callable[[], bool], seconds: float | None = None) -> None:
        """Return once something is so, or after so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while not over():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), left)
