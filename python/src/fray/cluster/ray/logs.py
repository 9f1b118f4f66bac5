"""What jobs have written, as the registry keeps it: in the order in which it came."""

from __future__ import annotations

import codecs
import pickle
from dataclasses import dataclass

from fray.cluster.ray.store import Store
from fray.cluster.types import JobId

MAX_JOB = 4 << 20
"""Bytes that are kept of one job, of the last."""
MAX_ALL = 128 << 20
"""Bytes that are kept of all, of the jobs that wrote last."""


@dataclass(frozen=True)
class Chunk:
    """What a task wrote at a time."""

    number: int
    """From 0, in the order of the job."""
    attempt: int
    task: int
    data: bytes
    start: int = 0
    """How many bytes the task had written before, in this attempt."""

    @property
    def end(self) -> int:
        """How many bytes it had written then."""
        return self.start + len(self.data)


class Lines:
    """Chunks as text for people: lines name their task where there are several."""

    def __init__(self, prefixed: bool) -> None:
        self._prefixed = prefixed
        self._decoders: dict[tuple[int, int], codecs.IncrementalDecoder] = {}
        self._task = -1  # whose line is unfinished, -1: none's

    def text(self, chunk: Chunk) -> str:
        """Return what to print. A chunk may end within a line, or within a character."""
        key = chunk.attempt, chunk.task
        if key not in self._decoders:
            self._decoders[key] = codecs.getincrementaldecoder("utf-8")(errors="replace")
        text = self._decoders[key].decode(chunk.data)
        if not self._prefixed or not text:
            return text
        goes_on = self._task == chunk.task
        broken = "\n" if self._task >= 0 and not goes_on else ""
        lines = text.splitlines(keepends=True)
        self._task = -1 if text.endswith("\n") else chunk.task
        first, rest = lines[0] if goes_on else f"{chunk.task} | {lines[0]}", lines[1:]
        return broken + first + "".join(f"{chunk.task} | {line}" for line in rest)


class LogTable:
    """The output of all jobs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._of: dict[JobId, list[Chunk]] = {}
        self._sizes: dict[JobId, int] = {}
        self._ends: dict[tuple[JobId, int, int], int] = {}  # how much each task of an attempt has written
        for name in store.names("log"):
            job_id = JobId(name.rpartition("/")[0])
            value = store.get("log", name)
            if value is not None:
                self._add(job_id, pickle.loads(value))

    def _add(self, job_id: JobId, chunk: Chunk) -> None:
        self._of.setdefault(job_id, []).append(chunk)
        self._sizes[job_id] = self._sizes.get(job_id, 0) + len(chunk.data)
        self._ends[job_id, chunk.attempt, chunk.task] = chunk.end

    def count(self, job_id: JobId) -> int:
        """Return how many chunks there were so far."""
        chunks = self._of.get(job_id)
        return chunks[-1].number + 1 if chunks else 0

    def after(self, job_id: JobId, count: int) -> list[Chunk]:
        """Return the chunks from that number on that are kept."""
        return [chunk for chunk in self._of.get(job_id, []) if chunk.number >= count]

    def write(self, job_id: JobId, attempt: int, task: int, start: int, data: bytes) -> None:
        """Keep what a task wrote after `start` bytes. Writes may be repeated: what was written stays once."""
        known = self._ends.get((job_id, attempt, task), 0)
        if start < known:
            start, data = known, data[known - start :]
        if not data:
            return
        chunk = Chunk(self.count(job_id), attempt, task, data, start)
        self._add(job_id, chunk)
        self._store.put("log", _key(job_id, chunk.number), pickle.dumps(chunk))
        while self._sizes[job_id] > MAX_JOB and len(self._of[job_id]) > 1:
            self._shift(job_id)
        while sum(self._sizes.values()) > MAX_ALL and len(self._of) > 1:
            self.drop(next(other for other in self._of if other != job_id))

    def _shift(self, job_id: JobId) -> None:
        first = self._of[job_id].pop(0)
        self._sizes[job_id] -= len(first.data)
        self._store.delete("log", _key(job_id, first.number))

    def drop(self, job_id: JobId) -> None:
        """Forget what a job wrote."""
        for chunk in self._of.pop(job_id, []):
            self._store.delete("log", _key(job_id, chunk.number))
        self._sizes.pop(job_id, None)
        for key in [key for key in self._ends if key[0] == job_id]:
            del self._ends[key]


def _key(job_id: JobId, number: int) -> str:
    return f"{job_id}/{number:09d}"
