"""A whole run of fray.rl as jobs of a real fray cluster: its agents have the program for roles of Go."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import rl_small


def test_a_run_on_a_fray_cluster(stack: Any, tmp_path: Path) -> None:
    done = stack.run([sys.executable, rl_small.__file__, str(tmp_path / "out")], tmp_path, {})
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-8000:]}"
    assert done.stdout.splitlines()[-1] == "result: 2 checkpoints, 16 trajectories"
