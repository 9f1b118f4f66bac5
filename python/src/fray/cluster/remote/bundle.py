"""Project directories as bundles, in the format of fray's command line.

A bundle is a tar archive in a zstd frame, named by its SHA-256. The same files always give the same
bytes: entries are sorted, times and owners left out, of the mode only the executable bit is kept. What
.gitignore files exclude stays out, and so do .git, .fray, .venv and __pycache__.

The frame holds the archive as it is (RFC 8878, raw blocks): Python before 3.14 has no zstd, and projects
are small.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from fray.cluster.errors import InvalidRequestError
from fray.cluster.remote.ignore import ALWAYS, Rule, ignored, rules_above, rules_in

MAX_SIZE = 2 << 30
"""Bytes of files in a bundle."""
_FIELD = "environment.project"
_SPOOL = 16 << 20  # bytes that are kept in memory
_BLOCK = 128 << 10  # bytes, the most that a zstd block has
_FRAME_HEADER = b"\x28\xb5\x2f\xfd" + b"\x00" + b"\x38"  # magic, no options, a window of 128 KiB


@dataclass(frozen=True)
class Blob:
    """Bytes to upload."""

    sha256: str
    size: int
    content: IO[bytes]
    """May be read again and again, from its beginning."""


@dataclass(frozen=True)
class _Entry:
    path: str  # from the project's directory, with slashes
    mode: int
    size: int = 0
    link: str = ""


@contextmanager
def packed(project: str, max_size: int = MAX_SIZE) -> Iterator[Blob]:
    """Make the bundle of a directory, which is there within the `with` statement.

    Raises:
        InvalidRequestError: it is no directory, too large, or has a link that leads out of it.
    """
    root = Path(project).resolve()
    if not root.is_dir():
        raise InvalidRequestError.of(_FIELD, f"{project} is not a directory")
    entries = list(_entries(root, "", rules_above(root)))
    _check_size(project, entries, max_size)
    with tempfile.SpooledTemporaryFile(max_size=_SPOOL) as content:
        frame = _Frame(content)
        with tarfile.open(fileobj=frame, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for entry in entries:
                _add(archive, root, entry)
        frame.finish()
        yield Blob(frame.digest.hexdigest(), frame.size, content)


def files_of(project: str) -> list[str]:
    """Return the files and links of a directory that belong into its bundle, as paths within it, sorted.

    Raises:
        InvalidRequestError: it is no directory, or has a link that leads out of it.
    """
    root = Path(project).resolve()
    if not root.is_dir():
        raise InvalidRequestError.of(_FIELD, f"{project} is not a directory")
    entries = _entries(root, "", rules_above(root))
    return [entry.path for entry in entries if not stat.S_ISDIR(entry.mode)]


def _entries(root: Path, below: str, above: Sequence[Rule]) -> Iterator[_Entry]:
    """Yield what belongs into a bundle, sorted within each directory, without directories that are empty."""
    rules = [*above, *rules_in(root, below)]
    with os.scandir(root / below) as found:
        children = sorted(found, key=lambda child: os.fsencode(child.name))
    for child in children:
        path = f"{below}/{child.name}" if below else child.name
        is_dir = child.is_dir(follow_symlinks=False)
        if child.name in ALWAYS or ignored(rules, path, is_dir):
            continue
        if is_dir:
            inside = list(_entries(root, path, rules))
            if inside:
                yield _Entry(path, stat.S_IFDIR)
                yield from inside
            continue
        status = child.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            yield _Entry(path, status.st_mode, status.st_size)
        elif stat.S_ISLNK(status.st_mode):
            yield _Entry(path, status.st_mode, link=_link(root, path))


def _link(root: Path, path: str) -> str:
    """Return a link's target relative to the link."""
    target = str((root / path).readlink())
    here = os.path.dirname(path)  # noqa: PTH120 - of text
    if os.path.isabs(target):  # noqa: PTH117
        target = os.path.relpath(target, root / here)
    joined = os.path.normpath(os.path.join(here, target))  # noqa: PTH118
    if joined == ".." or joined.startswith("../"):
        raise InvalidRequestError.of(
            _FIELD,
            f"{path} is a symbolic link to {target}, outside the project; "
            "copy what it points to, or ignore it",
        )
    return target


def _check_size(project: str, entries: Sequence[_Entry], limit: int) -> None:
    total = sum(entry.size for entry in entries)
    if total <= limit:
        return
    largest = sorted(entries, key=lambda entry: -entry.size)[:3]
    names = ", ".join(f"{entry.path} ({entry.size >> 20} MiB)" for entry in largest)
    raise InvalidRequestError.of(
        _FIELD,
        f"the files of {project} have {total >> 20} MiB, more than the {limit >> 20} MiB that a bundle may "
        f"hold; list in .gitignore what need not be shipped; the largest are {names}",
    )


def _add(archive: tarfile.TarFile, root: Path, entry: _Entry) -> None:
    info = tarfile.TarInfo(entry.path)
    if stat.S_ISDIR(entry.mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(info)
    elif stat.S_ISLNK(entry.mode):
        info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, entry.link
        archive.addfile(info)
    else:
        info.size = entry.size
        info.mode = 0o755 if entry.mode & 0o111 else 0o644
        with (root / entry.path).open("rb") as file:
            archive.addfile(info, file)


class _Frame(io.RawIOBase):
    """Writes a zstd frame of raw blocks."""

    def __init__(self, to: IO[bytes]) -> None:
        self._to = to
        self._block = bytearray()
        self._archived = 0
        self.size = 0
        self.digest = hashlib.sha256()
        self._emit(_FRAME_HEADER)

    def writable(self) -> bool:
        """Report that it can be written to."""
        return True

    def tell(self) -> int:
        """Return how many bytes of the archive were written."""
        return self._archived

    def write(self, data: object) -> int:
        """Add bytes of the archive."""
        added = bytes(data)  # type: ignore[call-overload]
        self._archived += len(added)
        self._block += added
        while len(self._block) > _BLOCK:
            self._write_block(bytes(self._block[:_BLOCK]), last=False)
            del self._block[:_BLOCK]
        return len(added)

    def finish(self) -> None:
        """Write the last block."""
        self._write_block(bytes(self._block), last=True)

    def _write_block(self, content: bytes, last: bool) -> None:
        self._emit((len(content) << 3 | int(last)).to_bytes(3, "little"))
        self._emit(content)

    def _emit(self, data: bytes) -> None:
        self._to.write(data)
        self.digest.update(data)
        self.size += len(data)
