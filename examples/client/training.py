"""Training: one job of two tasks, followed to its end.

Run it with `python examples/client/training.py`.
"""

import json
import tempfile
from pathlib import Path

from fray.cluster import job_context
from fray.v2 import Entrypoint, JobRequest, ResourceConfig, current_client


def train_model(directory: str, steps: int = 200) -> None:
    """Fit a line to this task's half of some points, as stand-in for a model."""
    context = job_context()
    assert context is not None
    xs = [x / 10 for x in range(20)][context.task_index :: context.num_tasks]
    slope = offset = 0.0
    for _ in range(steps):
        errors = [(x, slope * x + offset - (3 * x - 1)) for x in xs]
        slope -= 0.5 * sum(x * error for x, error in errors) / len(xs)
        offset -= 0.5 * sum(error for _, error in errors) / len(xs)
    result = {"slope": round(slope, 2), "offset": round(offset, 2)}
    Path(directory, f"task-{context.task_index}.json").write_text(json.dumps(result))
    print(f"task {context.task_index} of {context.num_tasks}: {result}")


def main() -> None:
    """Train, and print what the tasks have learned."""
    client = current_client()
    directory = tempfile.mkdtemp(prefix="fray-training-")  # on a cluster, in storage that all hosts share
    job = client.submit(
        JobRequest(
            name="train",
            entrypoint=Entrypoint.from_callable(train_model, args=(directory,)),
            resources=ResourceConfig(cpu=0.25, ram="200m"),
            num_tasks=2,
        )
    )
    status = job.wait(timeout=600, raise_on_failure=True)
    learned = [json.loads(path.read_text()) for path in sorted(Path(directory).glob("task-*.json"))]
    print(f"result: training {status}: {learned}")
    client.shutdown()


if __name__ == "__main__":
    main()
