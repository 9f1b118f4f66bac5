"""Bundles of projects on the node where a task runs, see fray.cluster.remote.bundle for their format."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

_HEADER = 6  # bytes of a frame: magic, descriptor and window, as bundles have them
_RAW = 0  # the type of blocks (RFC 8878, 3.1.1.2)


def unpack(bundle: bytes, directory: Path) -> None:
    """Extract a bundle.

    Raises:
        ValueError: it is none.
    """
    with tarfile.open(fileobj=io.BytesIO(archive_of(bundle))) as archive:
        if hasattr(tarfile, "tar_filter"):
            archive.extractall(directory, filter="tar")
        else:  # Python before 3.11.4
            archive.extractall(directory)


def archive_of(frame: bytes) -> bytes:
    """Return the archive within a frame of raw blocks.

    Raises:
        ValueError: it is no such frame.
    """
    if frame[:4] != b"\x28\xb5\x2f\xfd":
        raise ValueError("it is no zstd frame")
    found, at, last = bytearray(), _HEADER, False
    while not last:
        if at + 3 > len(frame):
            raise ValueError("the frame is cut")
        head = int.from_bytes(frame[at : at + 3], "little")
        last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        if kind != _RAW or at + 3 + size > len(frame):
            raise ValueError("the frame is cut, or has blocks that are compressed")
        found += frame[at + 3 : at + 3 + size]
        at += 3 + size
    return bytes(found)
