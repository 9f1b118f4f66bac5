"""What tests of several engines have in common: a real fray cluster on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

PROGRAM = os.environ.get("FRAY_TEST_PROGRAM", "")
"""The fray program, which scripts/test-engines builds."""

WAIT = 300.0  # seconds; a busy machine keeps this


class Stack:
    """A stack of its own that is being watched: jobs run as processes of agents of this machine."""

    def __init__(self, directory: Path, environ: Mapping[str, str]) -> None:
        self.directory = directory
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FRAY_")}
        self.environ = {**kept, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path), **environ}
        (directory / "fray.hcl").touch()
        self._log = (directory / "watch.log").open("wb")
        self._watch = subprocess.Popen(
            [PROGRAM, "watch", "--http", "127.0.0.1:0"],
            cwd=directory,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._watch.stdout is not None
        for line in self._watch.stdout:
            self._log.write(line)
            if line.startswith(b"Page and metrics"):
                break
        else:
            self._log.close()
            raise RuntimeError(f"fray watch ended:\n{(directory / 'watch.log').read_text()}")
        self._copy = threading.Thread(target=shutil.copyfileobj, args=(self._watch.stdout, self._log))
        self._copy.start()

    def run(
        self, words: list[str], cwd: Path, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a program whose FRAY_CLIENT_SPEC names this stack."""
        shell = (
            'FRAY_CLIENT_SPEC=$FRAY_CLUSTER_SPEC; unset FRAY_CLUSTER_SPEC; export FRAY_CLIENT_SPEC; exec "$@"'
        )
        return run(
            [PROGRAM, "run", "-C", str(self.directory), "--", "sh", "-c", shell, "sh", *words],
            cwd,
            {**self.environ, **environ},
        )

    def close(self) -> None:
        """End all jobs, and the watch."""
        try:
            run([PROGRAM, "destroy", "--auto-approve"], self.directory, self.environ).check_returncode()
        finally:
            self._watch.send_signal(signal.SIGINT)
            self._watch.wait(WAIT)
            self._copy.join()
            assert self._watch.stdout is not None
            self._watch.stdout.close()
            self._log.close()


def run(words: list[str], cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        words, cwd=cwd, env=environ, capture_output=True, text=True, timeout=WAIT, check=False
    )


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Return a stack that is being watched."""
    if not PROGRAM or not shutil.which(PROGRAM):
        pytest.skip("FRAY_TEST_PROGRAM does not name the fray program; scripts/test-engines builds it")
    made = Stack(tmp_path_factory.mktemp("stack"), {})
    yield made
    made.close()
