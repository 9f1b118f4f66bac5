"""What a job writes, as it writes it."""

from __future__ import annotations

import sys
import time

from fray._pb import cluster_pb2 as pb
from fray.cluster.remote.connection import PAUSE, Connection
from fray.cluster.remote.convert import job_of
from fray.cluster.types import JobId, JobInfo


class Monitor:
    """Prints the output of a job, each line once also where the connection breaks in between."""

    def __init__(self, connection: Connection, job_id: JobId) -> None:
        self._connection, self._job_id = connection, job_id
        self._cursor = b""
        self._prefixed: bool | None = None  # unknown before the job runs

    def run(self) -> JobInfo:
        """Print until the job has ended."""
        while True:
            for message in self._connection.stream(self._connection.cluster.Monitor, self._request):
                self._print(message)
                self._cursor = message.cursor or self._cursor
                if message.HasField("job"):
                    return job_of(message.job)
            time.sleep(PAUSE)

    def _request(self) -> pb.MonitorRequest:
        return pb.MonitorRequest(job_id=self._job_id, after=self._cursor)

    def _print(self, message: pb.MonitorResponse) -> None:
        if not message.data:
            return
        text = message.data.decode(errors="replace")
        if self._is_prefixed():
            text = "".join(f"{message.task} | {line}" for line in text.splitlines(keepends=True))
        sys.stdout.write(text)
        sys.stdout.flush()

    def _is_prefixed(self) -> bool:
        """Report whether lines name the task that wrote them: where there are several."""
        if self._prefixed is None:
            request = pb.PollRequest(job_id=self._job_id)
            job = self._connection.call(self._connection.cluster.Poll, request)
            self._prefixed = len(job.tasks) > 1
        return self._prefixed
