# marin/inference/inference_pool.py
from dataclasses import dataclass
from typing import Iterator

from fray.cluster import (
    current_cluster,
    ClusterResolver,
    Entrypoint,
    EnvironmentConfig,
    JobGroupConfig,
    JobRequest,
    ResourceConfig,
)
from fray.rpc import ActorContext, ActorServer


@dataclass
class InferenceConfig:
    model_path: str
    tpu_type: str = "v5litepod-4"
    num_servers: int = 4
    batch_size: int = 32


class InferenceActor:
    """Actor that hosts an inference model."""

    def __init__(self, model_path: str):
        import jax
        from levanter.inference import load_model

        self.model = load_model(model_path)
        self.device_count = jax.device_count()

    def predict(self, ctx: ActorContext, prompts: list[str]) -> list[str]:
        # ctx available if this actor needs to call other actors
        return self.model.generate(prompts)


def inference_server_main(config: InferenceConfig, server_id: int):
    """Entrypoint for inference server jobs."""
    cluster = current_cluster()
    server = ActorServer(cluster)

    actor = InferenceActor(config.model_path)
    server.register(f"inference_{server_id}", actor)
    server.register("inference_pool", actor)  # Pool name for load balancing
    server.serve()


class InferencePool:
    """Client for dispatching work to inference servers."""

    def __init__(self, cluster, job_ids: list, config: InferenceConfig):
        self.cluster = cluster
        self.resolver = ClusterResolver(cluster)
        self.job_ids = job_ids
        self.config = config

    def predict(self, prompts: list[str]) -> list[str]:
        """Run inference on prompts, load-balancing across servers."""
        handles = self.resolver.lookup_all("inference_pool")
        results = []

        for i in range(0, len(prompts), self.config.batch_size):
            batch = prompts[i:i + self.config.batch_size]
            handle = handles[i // self.config.batch_size % len(handles)]
            results.extend(handle.predict(batch))

        return results

    def shutdown(self):
        for job_id in self.job_ids:
            self.cluster.terminate(job_id)


def launch_inference_pool(config: InferenceConfig) -> InferencePool:
    """Launch a pool of inference servers."""
    cluster = current_cluster()
    resolver = ClusterResolver(cluster)

    requests = [
        JobRequest(
            name=f"inference-{i}",
            resources=ResourceConfig.with_tpu(config.tpu_type),
            entrypoint=Entrypoint.from_callable(inference_server_main, args=(config, i)),
            environment=EnvironmentConfig.create(extras=["tpu"]),
        )
        for i in range(config.num_servers)
    ]

    job_ids = cluster.launch_group(
        requests,
        group=JobGroupConfig(name="inference-pool", same_region=True),
    )

    # Wait for all servers to register
    for i in range(config.num_servers):
        resolver.wait_for_actor(f"inference_{i}")

    return InferencePool(cluster, job_ids, config)


# Example usage
if __name__ == "__main__":
    config = InferenceConfig(
        model_path="gs://bucket/checkpoints/llama-8b",
        num_servers=4,
    )

    pool = launch_inference_pool(config)

    prompts = ["Hello, world!", "What is the capital of France?"]
    results = pool.predict(prompts)
    print(results)

    pool.shutdown()
