"""A process that measures its own memory, at a socket in the directory of its task."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = textwrap.dedent(
    """
    import sys
    from fray import profiles
    profiles.serve()
    profiles.serve()
    kept = []
    def hoard():
        kept.append(bytearray(10_000))
    print("serves", flush=True)
    while True:
        hoard()
        if len(kept) > 1000:
            kept.clear()
        if not sys.stdin.isatty():
            import time
            time.sleep(0.001)
    """
)


def asked(directory: Path, pid: int, path: str) -> tuple[str, bytes]:
    """The status line and the body of an answer."""
    os.chdir(directory)  # an address has 108 bytes
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(60)
        connection.connect(f"{pid}.sock")
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        data = b""
        while part := connection.recv(1 << 16):
            data += part
    head, _, body = data.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body


@pytest.mark.skipif(sys.platform != "linux", reason="addresses of sockets are shortened on Linux")
def test_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a function keeps is in the profile under its name; requests that make no sense are refused."""
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / ("long-" * 30)
    directory.mkdir()
    environ = {**os.environ, "FRAY_PROFILES": str(directory)}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"serves\n"
            assert stat.S_IMODE((directory / f"{process.pid}.sock").stat().st_mode) == 0o600
            status, body = asked(directory, process.pid, "/memory?seconds=0.5")
            assert status == "HTTP/1.0 200 OK"
            profile = json.loads(body)
            assert profile["profiles"][0]["unit"] == "bytes"
            assert sum(profile["profiles"][0]["weights"]) > 10_000
            for path in ("/memory?seconds=0", "/memory?seconds=x", "/memory?seconds=1e9"):
                assert asked(directory, process.pid, path)[0] == "HTTP/1.0 400 Bad Request"
            assert asked(directory, process.pid, "/other")[0] == "HTTP/1.0 404 Not Found"
        finally:
            process.kill()
            process.wait(300)


def test_outside_of_tasks(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Without the directory nothing is served; one that is gone is reported, and the program goes on."""
    from fray import profiles

    monkeypatch.delenv("FRAY_PROFILES", raising=False)
    profiles.serve()
    monkeypatch.setenv("FRAY_PROFILES", "/nowhere/at/all")
    monkeypatch.setattr(profiles, "_begun", set())
    profiles.serve()
    assert "cannot measure the memory" in capfd.readouterr().err


def test_functions_of_lines(tmp_path: Path) -> None:
    """A line belongs to the innermost function around it."""
    from fray import profiles

    file = tmp_path / "a.py"
    file.write_text("x = 1\ndef outer():\n    def inner():\n        return 2\n    return inner\n")
    known: dict[str, list[tuple[int, int, str]]] = {}
    names = [profiles._function(known, str(file), line) for line in (1, 2, 4, 5)]
    assert names == ["<module>", "outer", "inner", "outer"]
    assert profiles._function(known, "<string>", 1) == "<module>"
