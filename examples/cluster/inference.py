"""Inference: a group of servers, which are found by name, and one client that spreads work over them.

Run it with `python examples/cluster/inference.py`.

Servers speak plain HTTP here, with the standard library.
"""

import json
import os
import time
import urllib.request
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fray.cluster import (
    Cluster,
    Entrypoint,
    EnvironmentConfig,
    JobGroupConfig,
    JobId,
    JobRequest,
    ResourceConfig,
    current_cluster,
    job_context,
)


@dataclass
class InferenceConfig:
    """What is served, by how many."""

    model_path: str
    tpu_type: str = "v5litepod-4"
    num_servers: int = 4
    batch_size: int = 32


class Model:
    """Answers prompts, as stand-in for a model."""

    def __init__(self, path: str) -> None:
        self.path = path

    def generate(self, prompts: list[str]) -> list[str]:
        """Return an answer to each prompt."""
        return [f"Response to: {prompt}" for prompt in prompts]


def inference_server_main(config: InferenceConfig, server_id: int) -> None:
    """Serve the model until the job is terminated."""
    model = Model(config.model_path)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            prompts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps({"server": server_id, "answers": model.generate(prompts)}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    context = job_context()
    assert context is not None
    host = os.environ.get("FRAY_HOST_ADDRESS", "127.0.0.1")
    with ThreadingHTTPServer((host, 0), Handler) as server:
        address = f"{host}:{server.server_address[1]}"
        metadata = current_cluster().metadata
        metadata.register(f"inference_{server_id}", address, context.job_id)
        metadata.register("inference_pool", address, context.job_id)  # for load balancing
        server.serve_forever()


class InferencePool:
    """Dispatches work to inference servers."""

    def __init__(self, cluster: Cluster, job_ids: list[JobId], config: InferenceConfig) -> None:
        self.cluster = cluster
        self.job_ids = job_ids
        self.config = config

    def predict(self, prompts: list[str]) -> list[str]:
        """Run inference on prompts, load-balancing across servers."""
        endpoints = self.cluster.metadata.lookup_all("inference_pool")
        size = self.config.batch_size
        results: list[str] = []
        for i in range(0, len(prompts), size):
            endpoint = endpoints[i // size % len(endpoints)]
            body = json.dumps(prompts[i : i + size]).encode()
            with urllib.request.urlopen(f"http://{endpoint.address}", body, timeout=30) as answer:
                results.extend(json.load(answer)["answers"])
        return results

    def wait_until_ready(self, timeout: float = 60.0) -> None:
        """Wait until all servers have registered, as long as none has ended."""
        until = time.monotonic() + timeout
        while len(self.cluster.metadata.lookup_all("inference_pool")) < self.config.num_servers:
            for job_id in self.job_ids:
                info = self.cluster.poll(job_id)
                if info.status.ended:
                    raise RuntimeError(f"server {info.name} {info.status}: {info.reason}")
            if time.monotonic() > until:
                raise TimeoutError(f"not all servers were ready after {timeout} s")
            time.sleep(0.1)

    def shutdown(self) -> None:
        """End the servers."""
        for job_id in self.job_ids:
            self.cluster.terminate(job_id)


def launch_inference_pool(config: InferenceConfig) -> InferencePool:
    """Launch a pool of inference servers."""
    cluster = current_cluster()
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
    pool = InferencePool(cluster, job_ids, config)
    pool.wait_until_ready()
    return pool


def main() -> list[str]:
    """Ask a pool a few questions."""
    config = InferenceConfig(model_path="gs://bucket/checkpoints/llama-8b", num_servers=2, batch_size=1)
    pool = launch_inference_pool(config)
    try:
        results = pool.predict(["Hello, world!", "What is the capital of France?"])
        print(results)
        return results
    finally:
        pool.shutdown()


if __name__ == "__main__":
    main()
