"""The actors in docs/guides/actors.md and in the README."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "actors.md").read_text()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        pytest.param(GUIDE, "40\n[41, 42]\nValueError: it only goes up\n", id="guide"),
        pytest.param((ROOT / "README.md").read_text(), "add\n", id="README"),
    ],
)
def test_the_first_actor(text: str, want: str) -> None:
    (snippet,) = re.findall(r"<!-- tested -->\n```python\n(.*?)```", text, re.DOTALL)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-"], input=snippet, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, want), done.stderr


def test_its_python_is_python() -> None:
    snippets = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert len(snippets) > 3
    for snippet in snippets:
        compile("async def main():\n    " + snippet.replace("\n", "\n    "), "guide", "exec")
