"""The programs in the guides of Ray and Iris, which mean the same on every cluster: here in this process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
IRIS_NEEDS = """
def train():
    print("trained", flush=True)


class Counter:
    def __init__(self):
        self.value = 0

    def add(self, n):
        self.value += n
        print(self.value, flush=True)
        return self.value


"""


def snippets(guide: str) -> list[str]:
    """Return the Python of a guide."""
    return re.findall(r"```python\n(.*?)```", (GUIDES / guide).read_text(), re.DOTALL)


@pytest.mark.parametrize(
    ("guide", "before", "want"),
    [("ray-actors.md", "", "multiply\nadd\n"), ("iris.md", IRIS_NEEDS, "trained\n2\n")],
)
def test_the_first_program(guide: str, before: str, want: str) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FRAY_CLIENT_SPEC": "local"}
    program = before + snippets(guide)[0]
    done = subprocess.run(
        [sys.executable, "-"], input=program, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, want), done.stderr


def test_their_python_is_python() -> None:
    for guide in ("ray-actors.md", "iris.md"):
        for snippet in snippets(guide):
            compile(snippet, guide, "exec")
