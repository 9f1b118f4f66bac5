from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from fray.cluster import InvalidRequestError
from fray.cluster.remote.bundle import packed


def tree(directory: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(0o700 if name.endswith(".sh") else 0o600)
    return directory


def frame(project: Path) -> bytes:
    with packed(str(project)) as blob:
        blob.content.seek(0)
        data = blob.content.read()
    assert hashlib.sha256(data).hexdigest() == blob.sha256
    assert len(data) == blob.size
    return data


def unpacked(data: bytes) -> dict[str, tarfile.TarInfo]:
    return {info.name: info for info in tarfile.open(fileobj=io.BytesIO(archive(data)))}


def archive(data: bytes) -> bytes:
    """Read a zstd frame of raw blocks, RFC 8878 3.1.1."""
    assert data[:4] == b"\x28\xb5\x2f\xfd"
    assert data[4] == 0  # no checksum, no dictionary, the size is not given, a window follows
    window = 1 << (10 + (data[5] >> 3))
    at, content = 6, b""
    while True:
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        assert kind == 0
        assert size <= min(window, 128 << 10)
        content += data[at + 3 : at + 3 + size]
        at += 3 + size
        if last:
            assert at == len(data)
            return content


def files_in(project: Path) -> list[str]:
    return sorted(name for name, info in unpacked(frame(project)).items() if not info.isdir())


def test_files_come_back(tmp_path: Path) -> None:
    project = tree(
        tmp_path,
        {"main.py": "print(1)\n", "run.sh": "#!/bin/sh\n", "pkg/data": "x" * 300_000, "empty/none": ""},
    )
    (project / "link").symlink_to("pkg/data")
    (project / "absolute").symlink_to(project / "main.py")
    data = frame(project)
    found = unpacked(data)
    assert sorted(found) == [
        "absolute",
        "empty",
        "empty/none",
        "link",
        "main.py",
        "pkg",
        "pkg/data",
        "run.sh",
    ]
    assert {name: found[name].mode for name in ("main.py", "run.sh", "pkg")} == {
        "main.py": 0o644,
        "run.sh": 0o755,
        "pkg": 0o755,
    }
    assert (found["link"].linkname, found["absolute"].linkname) == ("pkg/data", "main.py")
    with tarfile.open(fileobj=io.BytesIO(archive(data))) as tar:
        content = tar.extractfile("pkg/data")
        assert content is not None
        assert content.read() == b"x" * 300_000


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    files = {"a.py": "1", "b/c.sh": "2"}
    first, second = tree(tmp_path / "first", files), tree(tmp_path / "second", files)
    assert frame(first) == frame(second)
    (second / "b/c.sh").chmod(0o600)
    assert frame(first) != frame(second)


def test_entries_are_sorted(tmp_path: Path) -> None:
    names = [f"{i * 37 % 101:03d}" for i in range(101)]
    project = tree(tmp_path, dict.fromkeys([*names, "050-/x", "a/b"], ""))
    assert list(unpacked(frame(project))) == [
        *sorted(names)[:51],
        "050-",
        "050-/x",
        *sorted(names)[51:],
        "a",
        "a/b",
    ]


def test_what_is_never_shipped(tmp_path: Path) -> None:
    names = [".git/config", ".fray/state.json", ".venv/bin/python", "a/__pycache__/b.pyc", "a/c.py"]
    assert files_in(tree(tmp_path, dict.fromkeys(names, ""))) == ["a/c.py"]


IGNORE = """*.o
/top
mid/dle
dir/
**/any
deep/**
a/**/z
!deep
[abc].txt
q?x
*.keep
!yes.keep
sp\\ ace
trail   \nfoo/*
!foo/bar
**/st/**
x/**/
w/**
!w/k
[!d].md
# comment
\\!odd
\\#hash
*
!*/
!*.o
!*.txt
!*.md
!*x
!any
!top
!dle
!z
!*.keep
no.keep
br[
{m,n}
[a-c]1
"""


def test_ignore_rules_are_gits(tmp_path: Path) -> None:
    """Git itself is the oracle of what a .gitignore file means."""
    names = (
        "x.o top s/top mid/dle s/mid/dle dir s/dir/f.txt any p/q/any deep/f.md deep/g/h.md a/z a/b/z "
        "a/b/c/z a.txt d.txt qax q/x no.keep yes.keep foo/bar foo/baz.txt foo/qux/b.txt u/st/v.txt x/y/w.txt "
        "d.md e.md br[ m {m,n} s/y.o s/t/y.o !odd #hash b1 d1 w/k w/l w/m/n"
    ).split()
    project = tree(tmp_path, {**dict.fromkeys([*names, "sp ace", "trail"], ""), ".gitignore": IGNORE})
    tree(project, {"s/.gitignore": "!*.o\ntop\n/dir\n"})
    _against_git(project, project)
    _against_git(project, project / "s")  # a project within a repository


def test_more_ignore_rules_are_gits(tmp_path: Path) -> None:
    rules = "*.log\n/build/\n!keep.log\nnotes.txt \ndocs/**/*.pdf\nlogs/\n!logs\n{a,b}\n\ufeffc\n"
    names = (
        "a.log keep.log build/x sub/build/x notes.txt docs/a/b/c.pdf docs/c.pdf docs/c.md logs/x.txt a b c"
    ).split()
    project = tree(
        tmp_path, {**dict.fromkeys(names, ""), ".gitignore": rules, "sub/.gitignore": "*\n!.gitignore"}
    )
    _against_git(project, project)


def _against_git(repository: Path, project: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "core.excludesFile=", "-C", str(repository), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    below = project.relative_to(repository).as_posix()
    listed = git("ls-files", "-z", "-co", "--exclude-standard", below).split("\0")
    prefix = "" if below == "." else below + "/"
    assert files_in(project) == sorted(name.removeprefix(prefix) for name in listed if name)


@pytest.mark.parametrize("target", ["../../elsewhere", "/etc/passwd", ".."])
def test_links_out_of_the_project_are_rejected(tmp_path: Path, target: str) -> None:
    (tmp_path / "escape").symlink_to(target)
    with pytest.raises(InvalidRequestError, match=r"escape is a symbolic link to .*, outside the project"):
        files_in(tmp_path)


def test_large_projects_are_rejected(tmp_path: Path) -> None:
    tree(tmp_path, {"data/large.bin": "x" * (3 << 20), "small": "y"})
    with pytest.raises(InvalidRequestError, match=r"3 MiB, more than the 2 MiB .*data/large.bin \(3 MiB\)"):
        packed(str(tmp_path), 2 << 20).__enter__()


def test_what_is_no_directory_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="not a directory"):
        files_in(tmp_path / "none")
