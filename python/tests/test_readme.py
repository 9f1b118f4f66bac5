from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
SNIPPETS = re.findall(r"<!-- tested -->\n```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) == README.read_text().count("```python") == 3


@pytest.mark.parametrize(
    ("snippet", "want"),
    list(
        zip(
            SNIPPETS,
            [
                {"trained for 100 steps": 2, "succeeded": 1},  # by each of its tasks
                {"hello": 1, "succeeded": 1},
                {"42": 1, "[43, 44, 45]": 1},
            ],
            strict=True,
        )
    ),
)
def test_snippets_run(snippet: str, want: dict[str, int]) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-"], input=snippet, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Threads that print at once may share a line.
    assert {text: done.stdout.count(text) for text in want} == want, done.stdout
