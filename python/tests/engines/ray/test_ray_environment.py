"""Checks 22 to 24: variables, projects, large callables."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engines.ray import engine_programs as programs
from engines.ray.helpers import WAIT, call, command
from fray.cluster import EnvironmentConfig, JobStatus, TerminationCause

SECRET = "s3cr3t-" + "x" * 20


def test_ray_22_variables(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    environment = EnvironmentConfig.create(env_vars={"LANG": "of-the-job", "PASSWORD": SECRET})
    show = 'echo "$LANG $PASSWORD $FRAY_JOB_NAME $FRAY_ATTEMPT ${RAY_JOB_ID-none} $(pwd)"'
    job = cluster.launch(command("variables", "sh", "-c", show, environment=environment))
    assert cluster.monitor(job).status is JobStatus.SUCCEEDED
    shown = capfd.readouterr().out.split()
    assert shown[:5] == ["of-the-job", SECRET, "variables", "1", "none"]
    assert not Path(shown[5]).exists()  # what the task wrote there is gone with it


def test_ray_22_secrets_are_not_shown(cluster: Any) -> None:
    """Neither Ray's tables, which the dashboard shows, nor the texts of errors have them."""
    import ray
    from ray._private import state

    environment = EnvironmentConfig.create(env_vars={"PASSWORD": SECRET})
    job = cluster.launch(command("secret", "sh", "-c", "exit 1", environment=environment))
    info = cluster.wait(job, timeout=WAIT)
    tables = repr((state.actors(), state.jobs(), ray.util.placement_group_table(), state.workers()))
    assert f"fray-job {job}" in tables
    assert SECRET not in tables
    assert SECRET not in repr(info)
    assert SECRET not in repr(cluster._shipper.launch(command("again", "true", environment=environment)))


def wheel(directory: Path, name: str) -> None:
    """Make a package with one module."""
    files = {
        f"{name}.py": f"NAME = '{name}'\n",
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{name}-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\n"
        "Root-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    with zipfile.ZipFile(directory / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
            lines.append(f"{path},sha256={digest},{len(text)}")
        archive.writestr(
            f"{name}-1.0.dist-info/RECORD", "\n".join([*lines, f"{name}-1.0.dist-info/RECORD,,", ""])
        )


def project(directory: Path) -> Path:
    """Make a project with a module of its own, which depends on a package that is beside it."""
    directory.mkdir()
    wheel(directory, "greeting")
    (directory / "pyproject.toml").write_text(
        '[project]\nname = "program"\nversion = "1"\nrequires-python = ">=3.11"\n'
        'dependencies = ["greeting"]\n'
        '[tool.uv.sources]\ngreeting = { path = "greeting-1.0-py3-none-any.whl" }\n'
    )
    (directory / "helper.py").write_text("import greeting\nTEXT = 'hello ' + greeting.NAME\n")
    subprocess.run(["uv", "lock", "--offline", "--quiet"], cwd=directory, check=True, timeout=WAIT)
    return directory


def test_ray_23_project_and_packages(cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    environment = EnvironmentConfig.create(project=str(project(tmp_path / "program")))
    job = cluster.launch(
        command("project", "python", "-c", "import helper; print(helper.TEXT)", environment=environment)
    )
    info = cluster.monitor(job)
    assert capfd.readouterr().out.splitlines()[-1:] == ["hello greeting"], info
    assert info.status is JobStatus.SUCCEEDED


def test_ray_23_missing_package(cluster: Any, tmp_path: Path) -> None:
    """It fails once, with uv's text: neither a preemption nor worth another try."""
    broken = project(tmp_path / "program")
    (broken / "greeting-1.0-py3-none-any.whl").unlink()
    environment = EnvironmentConfig.create(project=str(broken))
    job = cluster.launch(command("broken", "true", environment=environment, max_retries_failure=50))
    info = cluster.wait(job, timeout=WAIT)
    assert (info.status, info.failures, info.preemptions) == (JobStatus.FAILED, 1, 0)
    assert info.reason.startswith("set-up failed: uv sync: exit status")
    assert "greeting-1.0-py3-none-any.whl" in info.reason
    assert info.tasks[0].termination is not None
    assert info.tasks[0].termination.cause is TerminationCause.PACKAGE_MISSING


def test_ray_24_large_callable(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    job = cluster.launch(call("large", programs.measure, b"x" * (50 << 20)))
    assert cluster.monitor(job).status is JobStatus.SUCCEEDED
    assert capfd.readouterr().out == "52428800\n"


def test_ray_fray_is_compiled_once(cluster: Any) -> None:
    """Nodes have PYTHONDONTWRITEBYTECODE here, as many images do."""
    cluster.wait(cluster.launch(call("compiled", programs.check_compiled)), raise_on_failure=True)
