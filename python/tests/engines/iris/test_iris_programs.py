"""What programs bring to a real Iris, and programs that Iris itself started."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import fray
from fray.cluster import Entrypoint, EnvironmentConfig, JobRequest, JobStatus
from fray.cluster.iris import IrisCluster
from iris_process import Iris
from waiting import eventually

SOURCES = Path(fray.__file__).parents[1]


def test_iris_project_arrives(
    iris: Iris, cluster: IrisCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "pyproject.toml").write_text("[tool.nothing]\n")
    (project / "shipped.py").write_text(
        "def work():\n    print('from', __file__.rpartition('/')[2], end='!\\n')\n"
    )
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(project))
    import shipped  # type: ignore[import-not-found]

    job_id = cluster.launch(JobRequest("whole", Entrypoint.from_callable(shipped.work)))
    assert cluster.wait(job_id, raise_on_failure=True, timeout=300).status is JobStatus.SUCCEEDED
    assert cluster._jobs.logs(job_id).last(0, 0) == ("from shipped.py!",)
    # By name, from elsewhere.
    monkeypatch.chdir(tmp_path)
    other = IrisCluster(iris.url, user=cluster.spec.user, workspace=project)
    command = Entrypoint.from_command(["python", "-c", "import shipped; shipped.work()"])
    job_id = other.launch(JobRequest("command", command))
    assert other.wait(job_id, raise_on_failure=True, timeout=300).status is JobStatus.SUCCEEDED
    other.close()


def test_iris_variables(cluster: IrisCluster) -> None:
    given = EnvironmentConfig(env_vars={"A": "x y", "JAX_PLATFORMS": "tpu"})
    entrypoint = Entrypoint.from_command(["bash", "-c", 'echo "$A/$JAX_PLATFORMS/$FRAY_ATTEMPT"'])
    job_id = cluster.launch(JobRequest("given", entrypoint, environment=given))
    cluster.wait(job_id, timeout=300)
    assert cluster._jobs.logs(job_id).last(0, 0) == ("x y/tpu/1",)


def test_iris_started_this_program(iris: Iris, cluster: IrisCluster, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "from fray.v2 import Entrypoint, JobRequest, current_client\n"
        "client = current_client()\n"
        "job = client.submit(JobRequest('child', Entrypoint.from_callable(lambda: print('here'))))\n"
        "print(job.wait(timeout=300), client.cluster.namespace)\n"
    )
    user, script = cluster.spec.user, f"PYTHONPATH={SOURCES} exec {sys.executable} -u {program}"
    body = {
        "name": f"/{user}/driver",
        "entrypoint": {"runCommand": {"argv": ["bash", "-c", script]}},
        "environment": {"envVars": {"FRAY_CLIENT_SPEC": "iris://"}},
        "resources": {"cpuMillicores": 1000},
        "replicas": 1,
        "clientRevisionDate": "2100-01-01",
    }
    iris.call("LaunchJob", body)
    driver = f"/{user}/driver"
    info = cluster.wait(driver, raise_on_failure=True, timeout=300)  # type: ignore[call-overload]
    assert info.status is JobStatus.SUCCEEDED
    assert cluster._jobs.logs(driver).last(0, 0) == (f"succeeded {user}/driver",)
    assert cluster.poll(f"{driver}/child").status is JobStatus.SUCCEEDED  # type: ignore[arg-type]


def test_iris_namespaces(iris: Iris, cluster: IrisCluster) -> None:
    """The same program twice at a time."""
    sleeping = JobRequest("train", Entrypoint.from_command(["sleep", "600"]))
    runs = [IrisCluster(iris.url, user=cluster.spec.user, namespace=name) for name in ("run1", "run2")]
    ids = [run.launch(sleeping) for run in runs]
    assert ids == [f"/{cluster.spec.user}/run1.train", f"/{cluster.spec.user}/run2.train"]
    assert [[job.name for job in run.list_jobs()] for run in runs] == [["train"], ["train"]]
    for run, job_id in zip(runs, ids, strict=True):
        run.terminate(job_id)
        eventually(lambda run=run, job_id=job_id: run.poll(job_id).status is JobStatus.STOPPED)  # type: ignore[misc]
        run.close()
