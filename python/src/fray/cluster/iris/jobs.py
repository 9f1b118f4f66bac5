"""How the jobs of an Iris cluster stand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from fray._host_run import CONSTRUCTION_FAILED
from fray.cluster.errors import NotFoundError
from fray.cluster.iris.answer import ended_attempts, job_of, number, status_of
from fray.cluster.iris.connection import Connection
from fray.cluster.iris.logs import Logs
from fray.cluster.iris.names import Names
from fray.cluster.iris.ship import LAUNCH
from fray.cluster.types import JobInfo, JobStatus, Termination

_RECORDED = (2, CONSTRUCTION_FAILED)  # exit statuses of fray's own programs that have recorded why
_ARRIVAL = 3.0  # seconds for which what a task wrote last is awaited
_PAGE = 500  # jobs, the most that Iris lists at once
_LAST_OFFSET = 5000  # where Iris's last page begins
_NEWEST_FIRST = {"sortField": "JOB_SORT_FIELD_DATE", "sortDirection": "SORT_DIRECTION_DESC"}
_MOST_TASKS = 16  # of which all attempts are asked for
_ACTOR_JOB = "actor-"


class Jobs:
    """Reads what the controller knows of jobs."""

    def __init__(self, connection: Connection, names: Names) -> None:
        self._connection, self._names = connection, names
        self._terminations: dict[str, Termination] = {}  # by Iris's id of the attempt

    def info(self, job_id: str) -> JobInfo:
        """Return how a job stands, with its tasks; of those that failed, what they wrote last.

        Raises:
            NotFoundError: there is no such job.
        """
        try:
            job = self._connection.call("GetJobStatus", {"jobId": job_id})["job"]
            tasks = self._with_attempts(self.tasks(job_id))
        except NotFoundError as err:
            raise NotFoundError(f"there is no job {job_id}") from err
        ended = status_of(job.get("state", "")).ended
        logs = Logs(self._connection, job_id, number(job.get("submittedAt", {}).get("epochMs")))
        terminations = self._recorded(logs, tasks, ended)
        tails = self._tails(logs, tasks) if ended and job["state"] != "JOB_STATE_SUCCEEDED" else {}
        return job_of(job, tasks, self._names.name(job_id), self._names.namespace, terminations, tails)

    def tasks(self, job_id: str) -> list[dict[str, Any]]:
        """Return the TaskStatus of each task of a job."""
        found: list[dict[str, Any]] = self._connection.call("ListTasks", {"jobId": job_id}).get("tasks", [])
        return found

    def _with_attempts(self, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the same with all attempts at tasks that were tried again: a list has the last one only."""
        again = [task for task in tasks if number(task.get("currentAttemptId")) > 0]
        if len(again) > _MOST_TASKS:
            return tasks
        whole = {
            task["taskId"]: self._connection.call("GetTaskStatus", {"taskId": task["taskId"]})["task"]
            for task in again
        }
        return [whole.get(task["taskId"], task) for task in tasks]

    def logs(self, job_id: str) -> Logs:
        """Return what reads the lines of a job, not those of one that had its name before.

        Raises:
            NotFoundError: there is no such job.
        """
        job = self._connection.call("GetJobStatus", {"jobId": job_id})["job"]
        return Logs(self._connection, job_id, number(job.get("submittedAt", {}).get("epochMs")))

    def listed(self, part: str = "") -> list[JobInfo]:
        """Return the jobs of the namespace, without their tasks; `part`: those with this in their names."""
        names = self._names
        jobs = [
            job
            for tree in names.trees
            for job in listed(self._connection, {"jobIdPrefix": tree, "nameFilter": part})
        ]
        return [job_of(job, (), names.name(job["jobId"]), names.namespace, {}, {}) for job in jobs]

    def named(self, name: str) -> Iterator[JobInfo]:
        """Return the jobs of the namespace that fray knows by a name, wherever in its tree."""
        part = self._names.job_id(name, detached=False).rpartition("/")[2]
        return (job for job in self.listed(part.lower()) if job.name == name)

    def launch_of(self, job_id: str) -> str:
        """Return which launch a job comes from, "" if it is none of fray's or there is none."""
        try:
            request = self._connection.call("GetJobStatus", {"jobId": job_id}).get("request", {})
        except NotFoundError:
            return ""
        return str(request.get("environment", {}).get("envVars", {}).get(LAUNCH, ""))

    def death_of_actor(self, actor: str) -> str:
        """Return why an actor that was created is gone for good, "" if it is not, or that is not known."""
        hosts = list(self.named(_ACTOR_JOB + actor))
        if not hosts or not all(job.status.ended for job in hosts):
            return ""
        last = max(hosts, key=lambda job: job.ended_at or 0.0)
        if last.status is JobStatus.STOPPED:
            return f'actor "{actor}" was deleted: job {last.job_id} was {last.reason or "terminated"}'
        if last.status is JobStatus.SUCCEEDED:
            return f'actor "{actor}" has ended: job {last.job_id} exited with status 0'
        return (
            f'actor "{actor}" has failed for good: job {last.job_id}: {last.reason or "no reason is known"}'
        )

    def _recorded(self, logs: Logs, tasks: list[Any], ended: bool) -> dict[tuple[int, int], Termination]:
        """Return what programs of fray's recorded about their failures; that of the last is awaited."""
        found: dict[tuple[int, int], Termination] = {}
        until = time.monotonic() + (_ARRIVAL if ended else 0.0)
        for index, attempt, status, key in ended_attempts(tasks):
            if status not in _RECORDED and key not in self._terminations:
                continue
            while key not in self._terminations:
                termination = logs.termination(index, attempt)
                if termination is not None:
                    self._terminations[key] = termination
                elif time.monotonic() >= until:
                    break
                else:
                    time.sleep(0.2)
            if key in self._terminations:
                found[index, attempt] = self._terminations[key]
        return found

    def _tails(self, logs: Logs, tasks: list[Any]) -> dict[int, tuple[str, ...]]:
        """Return the last lines of tasks that failed, once there are any."""
        found = {}
        until = time.monotonic() + _ARRIVAL
        for index, attempt, status, _ in ended_attempts(tasks):
            if not status:
                continue
            lines = logs.last(index, attempt)
            while not lines and time.monotonic() < until:
                time.sleep(0.2)
                lines = logs.last(index, attempt)
            if lines:
                found[index] = lines
        return found


def listed(connection: Connection, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the JobStatus of jobs that a query of ListJobs finds, the newest first, as far as Iris lists."""
    offset = 0
    while offset <= _LAST_OFFSET:
        page_of = {"offset": offset, "limit": _PAGE, **_NEWEST_FIRST}
        answer = connection.call("ListJobs", {"query": {**query, **page_of}})
        page = answer.get("jobs", ())
        yield from page
        offset += len(page)
        if not answer.get("hasMore") or not page:
            return
