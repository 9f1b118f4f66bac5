"""Training: one job on a TPU slice, followed to its end.

Run it with `python examples/cluster/training.py`.
"""

import math

from fray.cluster import (
    Entrypoint,
    EnvironmentConfig,
    JobInfo,
    JobRequest,
    ResourceConfig,
    current_cluster,
    job_context,
)


def train_model(steps: int = 200) -> None:
    """Fit a line to points, as stand-in for a model."""
    context = job_context()
    if context is not None:
        print(f"{context.job_name}: task {context.task_index} of {context.num_tasks}")
    points = [(x / 10, 3 * x / 10 - 1) for x in range(10)]
    slope = offset = 0.0
    for _ in range(steps):
        errors = [(x, slope * x + offset - y) for x, y in points]
        slope -= 0.5 * sum(x * error for x, error in errors) / len(points)
        offset -= 0.5 * sum(error for _, error in errors) / len(points)
    loss = sum((slope * x + offset - y) ** 2 for x, y in points)
    print(f"slope {slope:.2f}, offset {offset:.2f}, loss {loss:.1e}")
    if math.isnan(loss) or loss > 0.01:
        raise RuntimeError(f"the model did not learn: loss {loss}")


def launch_training(name: str, tpu_type: str = "v5litepod-16", num_slices: int = 1) -> JobInfo:
    """Launch a training job on the cluster and wait for it."""
    cluster = current_cluster()

    job_id = cluster.launch(
        JobRequest(
            name=f"train-{name}",
            resources=ResourceConfig.with_tpu(tpu_type, slice_count=num_slices),
            entrypoint=Entrypoint.from_callable(train_model),
            environment=EnvironmentConfig.create(
                extras=["tpu"],
                env_vars={
                    "WANDB_PROJECT": "marin",
                    "WANDB_RUN_NAME": name,
                },
            ),
        )
    )

    result = cluster.wait(job_id, raise_on_failure=True)
    print(f"Training completed with status: {result.status}")
    return result


if __name__ == "__main__":
    launch_training("llama-8b-baseline", tpu_type="v5litepod-4")
