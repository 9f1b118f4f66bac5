"""Runs a use case of fray-zero to an end, whatever cluster FRAY_CLUSTER_SPEC names.

    python drive.py inference | rl | multislice [threads | processes]

Two of them have no end of their own: what they wait for is looked at from beside them here.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
import time

from marin.inference.inference_pool import InferenceConfig, launch_inference_pool
from marin.rl.fray_rl_job import RLConfig, RLJob
from marin.training.multislice_training import MultiSliceConfig, MultiSliceJob

from fray.cluster import ClusterResolver, LocalCluster, current, current_cluster


def inference() -> None:
    pool = launch_inference_pool(InferenceConfig(model_path="gs://bucket/checkpoints/llama-8b"))
    print(pool.predict([f"prompt {i}" for i in range(100)])[-1])
    pool.shutdown()


def rl() -> None:
    job = RLJob(RLConfig(model_path="gs://bucket/llama", train_tpu_type="v5litepod-4", num_rollout_workers=2))
    info = job.run()
    step, path = ClusterResolver(current_cluster()).lookup("weight_coordinator").get_latest_checkpoint()
    print(f"the training worker {info.status} at step {step}, {path}")
    job.shutdown()


def multislice() -> None:
    job = MultiSliceJob(
        MultiSliceConfig(model_path="gs://bucket/llama", tpu_type="v5litepod-4", max_slices=2)
    )
    seen = threading.Event()

    def watch() -> None:
        coordinator = job.resolver.wait_for_actor("slice_coordinator")
        while (state := coordinator.heartbeat("watcher"))["step"] < 3 or state["slice_count"] < 2:
            time.sleep(0.05)
        seen.set()
        _thread.interrupt_main()

    threading.Thread(target=watch, daemon=True).start()
    try:
        job.run()
    except KeyboardInterrupt:
        assert seen.is_set()
        for job_id in [info.job_id for info in job.cluster.list_jobs()]:
            job.cluster.terminate(job_id)
        print("slices train together")


def main() -> None:
    # A shell that starts a job in the background has it ignore the interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kinds = {"inference": inference, "rl": rl, "multislice": multislice}
    match sys.argv[2:]:
        case [kind]:
            current.LocalCluster = lambda: LocalCluster(use_processes=kind == "processes")
    kinds[sys.argv[1]]()


if __name__ == "__main__":
    main()
