"""Memory into which a peer on the same machine writes large payloads, which saves copies through sockets.

The receiver offers it, and the sender writes, as long as both are of the same user: such processes can read
and write each other's memory anyway. Everything else goes through the connection.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import secrets
import stat
import sys
import threading
import weakref
from collections.abc import Sequence
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from fray.rpc._transport import background as _background

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

AVAILABLE: Final = sys.platform == "linux" and hasattr(os, "memfd_create")
"""Whether this system has such memory."""

_TOKEN: Final = 16  # bytes
_MOST_KEPT: Final = 256 << 20  # bytes of memory that is kept for the next payload
_KEPT: Final = 10.0  # seconds
_IN_HALVES: Final = 2 << 20  # bytes from which on two threads write
_ADD_SEALS: Final = 1033  # F_ADD_SEALS of linux/fcntl.h
_GET_SEALS: Final = 1034
_FIXED_SIZE: Final = 0x0002 | 0x0004  # F_SEAL_SHRINK | F_SEAL_GROW


_used: weakref.WeakSet[Offered] = weakref.WeakSet()


class Offered:
    """Memory of this process that a peer may write to."""

    def __init__(self, size: int) -> None:
        """Take memory from the system, lazily. Raises OSError."""
        self.size = size
        self.fd = os.memfd_create("fray-payload", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, size)
            fcntl.fcntl(self.fd, _ADD_SEALS, _FIXED_SIZE)
            self.memory = mmap.mmap(self.fd, size)
        except BaseException:
            os.close(self.fd)
            raise
        self.token = b""
        self.since = 0.0
        self.complete = False
        """The peer has written all of its payload, and writes no more."""
        self.seen = False
        """A process that was forked sees it, too."""
        _used.add(self)

    def begin(self) -> memoryview:
        """Begin to use it for a payload; return all of it. It is kept for others once no view is left."""
        import ctypes  # rarely needed; before anything changes, as a handler of a signal may be in here

        self.token, self.complete = secrets.token_bytes(_TOKEN), False
        self.memory[:_TOKEN] = self.token
        whole: Any = (ctypes.c_ubyte * self.size).from_buffer(self.memory)
        weakref.finalize(whole, _kept.give, self).atexit = False
        return memoryview(whole).cast("B")

    def close(self) -> None:
        """Give it back to the system."""
        with contextlib.suppress(BufferError):
            self.memory.close()
        os.close(self.fd)


class _Kept:
    """Memory that was used and is kept for the next payload, which saves the system's work on it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # views end in any thread, also one that is in here
        self._free: list[Offered] = []

    def take(self, size: int) -> Offered | None:
        """Return memory of at least a size and not much more; None: there is none."""
        with self._lock:
            for offered in self._free:
                if size <= offered.size <= 2 * size:
                    self._free.remove(offered)
                    return offered
        return None

    def give(self, offered: Offered) -> None:
        """Keep memory for a while."""
        with self._lock:
            unused = offered.complete and not offered.seen
            if unused and sum(each.size for each in self._free) + offered.size <= _MOST_KEPT:
                offered.since = monotonic()
                self._free.append(offered)
                _background.deadlines().add(offered.since + _KEPT, self)
                return
        offered.close()

    def forks(self) -> None:
        """Use nothing again that a process which is about to be forked can see, too."""
        with self._lock:
            free, self._free = self._free, []
            for offered in list(_used):
                offered.seen = True
        for offered in free:
            offered.close()

    def done(self) -> bool:
        """Return whether `expire` need not be called."""
        return not self._free

    def expire(self) -> None:
        """Give back what was not used for a while."""
        with self._lock:
            old = [each for each in self._free if monotonic() - each.since >= _KEPT]
            self._free = [each for each in self._free if each not in old]
        for each in old:
            each.close()


_kept = _Kept()
os.register_at_fork(before=_kept.forks)


def offer(size: int) -> Offered:
    """Return memory for a payload. Raises OSError."""
    return _kept.take(size) or Offered(size)


def write(fd: int, pieces: Sequence[memoryview], at: int) -> None:
    """Write pieces one after the other, from a place on; halves of a large one at the same time.

    Raises:
        OSError: the system has no memory for them.
    """
    for piece in pieces:
        half = len(piece) // 2 if len(piece) >= _IN_HALVES else 0
        if half:
            other = _helper(os.getpid()).submit(_write, fd, piece[:half], at)
            _write(fd, piece[half:], at + half)
            other.result()
        else:
            _write(fd, piece, at)
        at += len(piece)


def _write(fd: int, piece: memoryview, at: int) -> None:
    while len(piece):
        wrote = os.pwrite(fd, piece, at)
        piece, at = piece[wrote:], at + wrote


@lru_cache(maxsize=1)
def _helper(_pid: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, "fray-write")


def reach(pid: int, fd: int, token: bytes, size: int) -> int | None:
    """Return a descriptor of the memory that a peer offers; None: it is not reached, or none of this user's.

    Args:
        pid: The process, as it sees itself.
        fd: Its descriptor.
        token: What the memory begins with.
        size: Of the payload in bytes.
    """
    try:
        own = os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(own)
        if (
            stat.S_ISREG(status.st_mode)
            and status.st_uid == os.geteuid()
            and status.st_size >= size
            and len(token) == _TOKEN
            and fcntl.fcntl(own, _GET_SEALS) & _FIXED_SIZE == _FIXED_SIZE  # files of disks have no seals
            and os.pread(own, _TOKEN, 0) == token
        ):
            return own
    except OSError:
        pass
    os.close(own)
    return None
