"""The use cases of the reference, word for word (tests/zero/marin), on a LocalCluster.

With fray run and in a job of a cluster they run in examples/zero_test.go.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ZERO = Path(__file__).parent / "zero"
DRIVE = str(ZERO / "drive.py")
POOL = str(ZERO / "marin" / "inference" / "inference_pool.py")


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ([POOL], "['Response to: Hello, world!', 'Response to: What is the capital of France?']"),
        ([DRIVE, "rl"], "the training worker succeeded at step 200, gs://bucket/checkpoints/step-200"),
        ([DRIVE, "multislice"], "slices train together"),
        ([DRIVE, "rl", "processes"], "the training worker succeeded at step 200"),
    ],
    ids=["inference", "rl", "multislice", "rl-processes"],
)
def test_use_cases_run_as_they_stand(tmp_path: Path, words: list[str], want: str) -> None:
    environ = {k: v for k, v in os.environ.items() if not k.startswith("FRAY_")}
    environ |= {"PYTHONPATH": os.pathsep.join([str(ZERO), *sys.path]), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-B", *words],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert want in done.stdout, done.stdout + done.stderr
