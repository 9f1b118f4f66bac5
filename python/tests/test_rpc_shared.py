"""Memory into which peers on the same machine write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fray.rpc._transport import shared as _shared

SIZE = 1 << 20


def test_memory_is_reached_and_kept_for_the_next() -> None:
    offered = _shared.offer(SIZE)
    view = offered.begin()
    fd = _shared.reach(os.getpid(), offered.fd, offered.token, SIZE)
    assert fd is not None
    os.pwrite(fd, b"written", 100)
    os.close(fd)
    assert bytes(view[100:107]) == b"written"
    offered.complete = True
    part, token = view[100:107], offered.token
    del view
    assert _shared.offer(SIZE) is not offered, "it is in use"
    del part
    again = _shared.offer(SIZE)
    assert again is offered
    again.begin()
    assert _shared.reach(os.getpid(), again.fd, token, SIZE) is None, "of the payload before"


def test_memory_that_a_peer_may_write_to_still_is_not_used_again() -> None:
    offered = _shared.offer(SIZE)
    view = offered.begin()
    del view  # as of a call that was cancelled within
    assert _shared.offer(SIZE) is not offered


def test_memory_that_a_forked_process_sees_is_not_used_again() -> None:
    offered = _shared.offer(SIZE)
    view = offered.begin()
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    offered.complete = True
    del view
    assert _shared.offer(SIZE) is not offered


@pytest.mark.parametrize("kind", ["file", "memory that can shrink", "small memory", "no descriptor"])
def test_what_is_no_offered_memory_is_not_reached(kind: str, tmp_path: Path) -> None:
    token = bytes(16)
    if kind == "file":
        path = tmp_path / "file"
        path.write_bytes(bytes(SIZE))
        fd = os.open(path, os.O_RDONLY)
    elif kind == "memory that can shrink":
        fd = os.memfd_create("x")
        os.ftruncate(fd, SIZE)
    elif kind == "small memory":
        offered = _shared.Offered(SIZE - 1)
        offered.memory[:16] = token
        fd = os.dup(offered.fd)
    else:
        fd = os.open("/dev/null", os.O_RDONLY)
        os.close(fd)
    try:
        assert _shared.reach(os.getpid(), fd, token, SIZE) is None
    finally:
        if kind != "no descriptor":
            os.close(fd)
