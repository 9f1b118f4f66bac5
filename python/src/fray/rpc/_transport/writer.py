"""Sends the frames of a connection, for any number of threads.

This is on the path of every call, so it takes few locks and makes few system calls: a thread that sends
writes what waits by itself unless another one does, and a thread of its own comes in only where a peer is
slow or a frame may wait for others. What a frame means is left to its sender.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Final

from fray._locks import Changes, Worker
from fray.rpc._transport.transfer import Outbound
from fray.rpc._transport.wire import Buffer, Stream

_MAX_BATCH: Final = 1 << 20  # about what one write takes of what waits
_MAX_PARTS: Final = 512  # that one write takes; the system's limit is 1024
_LARGE: Final = 64 << 10
_ORPHANED: Final = 1.0  # seconds after which a turn is that of a thread that was interrupted just then
_BRIEF: Final = 0.001  # seconds
_MAX_QUEUED: Final = 64 << 20  # bytes that wait before their sender does


class Outgoing:
    """A frame that is on its way."""

    __slots__ = ("answered", "attended", "buffers", "head", "may_have_arrived", "ran", "size")

    def __init__(self, head: bytes, buffers: Sequence[Buffer] = (), body: int = 0) -> None:
        self.head, self.buffers = head, buffers
        self.size = len(head) + body
        self.may_have_arrived = False
        """Whether the peer may have it. Once the stream has ended, False: it never had all of it."""
        self.answered = self.attended = False  # see Sent
        self.ran = False
        """Whether it is a call that returned, and whose result is on its way."""


class _Batch:
    """What one write is to take, and how far it got."""

    __slots__ = ("frames", "left", "parts", "queued", "size")

    def __init__(self) -> None:
        self.frames: list[Outgoing] = []
        self.parts: list[Buffer] = []
        self.size = self.left = self.queued = 0

    def add(self, frame: Outgoing) -> None:
        frame.may_have_arrived = True
        self.frames.append(frame)
        self.parts.append(frame.head)
        if frame.buffers:
            self.parts.extend(frame.buffers)
        self.size += frame.size
        self.left += frame.size

    def advance(self, sent: int) -> None:
        self.left -= sent
        index = 0
        while sent and sent >= len(self.parts[index]):
            sent -= len(self.parts[index])
            index += 1
        del self.parts[:index]
        if sent:
            self.parts[0] = memoryview(self.parts[0])[sent:]

    def failed(self, in_doubt: int) -> None:
        """Take back what cannot have been read: frames that were not written to their end."""
        written = self.size - self.left + in_doubt
        for frame in self.frames:
            written -= frame.size
            if written < 0:
                frame.may_have_arrived = False


class FrameWriter:
    """Sends frames in the order in which they are handed over.

    The thread that holds `_turn` writes, until nothing waits. One that appends and finds it held may leave,
    as the holder checks again after releasing it. Where the peer is slow the holder leaves the turn to the
    writer's thread, by a token in `_left`.
    """

    def __init__(self, stream: Stream, name: str) -> None:
        self._stream, self._name = stream, name
        self._queue: deque[Outgoing] = deque()
        self._turn = threading.Lock()
        self._left: deque[None] = deque()
        self._unfinished: _Batch | None = None
        self._blocked = False  # the thread waits for the peer
        self._transfers: deque[tuple[Outbound, Outgoing]] = deque()
        self._transfer_lock = threading.Lock()
        self._wake: SimpleQueue[bool] = SimpleQueue()
        self._awake = False
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()
        self._room = Changes()
        self._waiting = 0
        self.failure: OSError | None = None
        """Why nothing can be sent any more."""
        self.queued = 0
        """About how many bytes of large frames wait."""

    def send(self, frame: Outgoing, later: bool = False) -> None:
        """Send a frame: at once, with all that waits, or on the writer's thread.

        A stream that has ended swallows it. That the peer is slow is no reason to wait.
        """
        self._queue.append(frame)
        if frame.size > _LARGE:
            with self._room.lock:
                self.queued += frame.size
        if not later:
            self.flush()
        elif not self._awake:
            self._awaken()

    def transfer(self, outbound: Outbound, whole: Outgoing | None = None) -> None:
        """Send a payload in parts, between other frames, on the writer's thread.

        The pieces must not change until it is sent. `whole` knows whether the peer may have all of it.
        """
        with self._transfer_lock:
            self._transfers.append((outbound, whole or Outgoing(b"")))
        self._awaken()

    def cut(self, seq: int) -> None:
        """Send no more of a payload."""
        with self._transfer_lock:
            for outbound, _ in self._transfers:
                if outbound.seq == seq:
                    outbound.cut = True

    def flush(self) -> None:
        """Write what waits as far as the peer takes it; the writer's thread does the rest."""
        try:
            while self._queue and self._turn.acquire(blocking=False):
                try:
                    done = self._drain(wait=False)
                except BaseException:
                    self.fail(OSError("sending was interrupted"))  # before another writes behind half a frame
                    self._turn.release()
                    raise
                if not done:
                    self._left.append(None)
                    self._awaken()
                    if self.failure is None or not self._inherits():
                        return
                    self._drain(wait=True)  # it ends at once, and the thread may have ended before
                self._turn.release()
        except BaseException:  # out of a handler of a signal
            # It is not known whether this thread has the turn, which is lost then.
            self.fail(OSError("sending was interrupted"))
            raise

    def send_now(self, frame: Outgoing) -> None:
        """Send a frame, which the system has when this returns, unless the peer is slow.

        It does not leave the frame to a thread that writes already, as this process may end before that does.
        """
        self.send(frame)
        while self._queue and not self._blocked and self.failure is None:
            if not self._turn.acquire(timeout=_BRIEF):
                return
            self._turn.release()
            self.flush()

    @property
    def busy(self) -> bool:
        """Whether a thread writes."""
        return self._turn.locked()

    @property
    def full(self) -> bool:
        """Whether so much waits that senders wait, too."""
        return self.queued > _MAX_QUEUED

    def wait_for_room(self, seconds: float) -> bool:
        """Wait while it is full; return whether there is room, or the stream has ended."""
        with self._room.lock:
            self._waiting += 1
            try:
                return self._room.wait_for(lambda: not self.full or self.failure is not None, seconds)
            finally:
                self._waiting -= 1

    def finish(self, seconds: float) -> None:
        """Send what waits, then report that no more will come; for at most so long."""
        self.flush()
        if self._turn.acquire(timeout=seconds):
            self._turn.release()
            self._stream.finish()

    def fail(self, reason: OSError) -> None:
        """End: what waits is not sent, and the thread stops."""
        self.failure = self.failure or reason
        self._stream.close()
        self._wake.put(False)
        self._freed(0)

    def join(self) -> None:
        """After `fail`: wait until no thread writes. By then each frame knows whether it was sent."""
        with self._start_lock:  # one that is being started can be waited for only then
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if self._turn.acquire(timeout=_ORPHANED):
            self._drain(wait=False)
            self._turn.release()

    def _drain(self, wait: bool) -> bool:
        """Write all that waits, in turn. Return whether it was, which with `wait` it is."""
        while True:
            if self.failure is not None and self._unfinished is None:
                self._queue.clear()
                self._end_transfers()
                return True
            batch = self._unfinished or self._next_batch()
            if batch is None:
                return True
            self._unfinished = None
            try:
                self._write(batch, wait)
            except OSError as err:
                batch.failed(self._stream.in_doubt)
                if self.failure is None:
                    self.failure = err
                    self._stream.close()  # the reader is to know, too
                self._freed(batch.queued)
                continue
            if batch.left:
                self._unfinished = batch
                return False
            if batch.queued:
                self._freed(batch.queued)

    def _write(self, batch: _Batch, wait: bool) -> None:
        if self.failure is not None:
            raise self.failure
        sent = self._stream.send(batch.parts, batch.left)
        while sent < batch.left:
            batch.advance(sent)
            if not wait:
                return
            self._blocked = True
            self._stream.wait_writable()
            self._blocked = False
            if self.failure is not None:
                raise self.failure
            sent = self._stream.send(batch.parts, batch.left)
        batch.left = 0

    def _next_batch(self) -> _Batch | None:
        queue = self._queue
        if not queue and not self._transfers:
            return None
        batch = _Batch()
        while queue and batch.size < _MAX_BATCH and len(batch.parts) < _MAX_PARTS:
            frame = queue.popleft()
            batch.add(frame)
            if frame.size > _LARGE:
                batch.queued += frame.size
        if self._transfers:
            self._add_part(batch)
        return batch if batch.frames else None

    def _end_transfers(self) -> None:
        with self._transfer_lock:
            while self._transfers:
                self._transfers.popleft()[0].end()

    def _add_part(self, batch: _Batch) -> None:
        """Add the next part of the payload whose turn it is."""
        with self._transfer_lock:
            while self._transfers:
                outbound, whole = self._transfers.popleft()
                if outbound.cut:
                    outbound.end()
                    continue
                try:
                    head, pieces = outbound.part_frame()
                except OSError as err:  # of memory of the peer
                    self.failure = self.failure or err
                    self._stream.close()
                    outbound.end()
                    return
                part = whole if outbound.over else Outgoing(b"")
                part.head, part.buffers = head, pieces
                part.size = len(head) + sum(len(p) for p in pieces)
                if not outbound.over:
                    self._transfers.append((outbound, whole))
                if head:
                    batch.add(part)
                if head or batch.frames:
                    return

    def _freed(self, size: int) -> None:
        with self._room.lock:
            self.queued = max(0, self.queued - size)
            if self._waiting:
                self._room.notify_all()

    def _awaken(self) -> None:
        self._awake = True
        if self._thread is None:
            with self._start_lock:
                if self._thread is None:
                    thread = Worker(self._run, self._name)
                    self._thread = thread
                    thread.start()
        self._wake.put(True)

    def _inherits(self) -> bool:
        """Take over a turn that was left, if there is one."""
        try:
            self._left.pop()
        except IndexError:
            return False
        return True

    def _run(self) -> None:
        while self._wake.get() and self.failure is None:
            self._awake = False  # from here on a thread that appends wakes this one again
            some = self._queue or self._transfers
            if self._inherits() or (some and self._turn.acquire(blocking=False)):
                self._finish()
        if self._inherits():
            self._finish()  # it ends at once, as the stream has

    def _finish(self) -> None:
        self._drain(wait=True)
        self._turn.release()
        self.flush()
