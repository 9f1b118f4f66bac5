"""The driver of one slice on Ray: it holds a placement group and runs one agent in each bundle.

Ray runs it as the entrypoint of a job. What it is to do is in the job's metadata, which
the provider writes: fray-slice, fray-attempt and fray-launch. It ends

- when Ray stops the job: agents end their tasks and themselves, and their directories go;
- with LOST when a node of the slice died: the others end, and the slice is dead as a whole;
- with WITHDRAWN, before any agent starts, when a later submission of the slice exists: Ray runs
  jobs that were stopped while they waited.

Nothing of it outlives the job: Ray removes the placement group and kills the actors of a driver
that is gone, and each actor's watcher ends its agent once the actor is. It uses the standard
library and Ray only.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

# Exit statuses, which the provider reads (providers/ray/status.go).
LOST, WITHDRAWN, HOST_FAILED, NO_FENCE = 71, 72, 73, 74

PR_SET_PDEATHSIG = 1  # prctl(2)

POLL = 1.0  # seconds between two readings of the nodes
STOP_PATIENCE = 590.0  # seconds that all hosts together may take to end; Ray waits for 600
FENCE_PATIENCE = 60.0  # seconds for which the list of jobs may not be readable
END_PATIENCE = 60.0  # seconds for an agent that ends what another one left


def say(text):
    """Write a line that the provider shows to people."""
    print("fray: " + " ".join(str(text).split()), flush=True)


class EndedError(Exception):
    """The end of the driver: its exit status, and the reason for people."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status


def read_metadata():
    """Return the metadata of this job, as Ray hands them to its driver."""
    return json.loads(os.environ["RAY_JOB_CONFIG_JSON_ENV_VAR"])["metadata"]


# The watcher: a process beside each host's actor, in a session of its own.


def base_dir():
    """Return where this node keeps what belongs to fray, of this user."""
    path = os.path.join(tempfile.gettempdir(), f"fray-ray-{os.getuid()}")
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.stat(path)
    if found.st_uid != os.getuid():
        raise OSError(f"{path} is another user's; remove it")
    return path


def place_program(source, digest):
    """Copy the program out of Ray's package, which Ray may remove while a task still runs."""
    place = os.path.join(base_dir(), "program", digest, "fray")
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        temp = f"{place}.{os.getpid()}.{threading.get_ident()}"
        shutil.copyfile(source, temp)
        os.chmod(temp, 0o755)
        os.rename(temp, place)
    return place


def agent_environment(gpus):
    """Return the node's environment, without what is of Ray's workers and fray's commands, with the GPUs.

    One that has none sees none: the node's belong to other actors.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("RAY_", "FRAY_", "__RAY"))}
    package = os.getcwd()
    paths = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p and not p.startswith(package)]
    env.pop("PYTHONPATH", None)
    if paths:
        env["PYTHONPATH"] = os.pathsep.join(paths)
    env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return env


def task_grace(directory):
    """Return the seconds that the task of a host may take to end; 0 without a task."""
    try:
        with open(os.path.join(directory, "task.lock")) as f:
            return float(json.load(f).get("grace", 0))
    except (OSError, ValueError):
        return 0.0


def gpu_args(ids):
    """Return the agent's arguments for the GPUs that Ray gave its actor: other actors have the others.

    Ray numbers them, or names them as CUDA_VISIBLE_DEVICES of the node does. GPUs with other names the
    agent finds in that variable.
    """
    return ["--gpus", ",".join(ids)] if ids and all(n.isdigit() for n in ids) else []


def agent_args(order, address):
    """Return the arguments of a host's agent: those of its slice, and what this node decides."""
    args = [*order["args"], "--dir", order["dir"], "--cache-dir", os.path.join(base_dir(), "cache")]
    args += ["--address", address, *gpu_args(order["gpus"])]
    return [*args, "--simulated"] if order["tpu"] and not has_tpu_chips() else args


class Watcher:
    """Runs the agent of one host until its standard input ends, which the actor's end closes."""

    def __init__(self, order):
        self.order = order
        self.directory = order["dir"]
        self.ending = threading.Event()
        self.libc = ctypes.CDLL(None)

    def run(self):
        """Keep an agent running until the end, then remove what it leaves."""
        threading.Thread(target=self.await_end, daemon=True).start()
        os.makedirs(self.directory, mode=0o700, exist_ok=True)
        delay = 1.0
        while not self.ending.is_set():
            began = time.monotonic()
            agent = self.start_agent([])
            self.report("running")
            while agent.poll() is None and not self.ending.wait(0.2):
                pass
            if self.ending.is_set():
                self.end_agent(agent)
                break
            delay = 1.0 if time.monotonic() - began > 60 else min(2 * delay, 30.0)
            self.report(f"failed: the agent ended with status {agent.returncode}: {self.last_line()}")
            self.ending.wait(delay)
        self.end_rest()
        shutil.rmtree(self.directory, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(os.path.dirname(self.directory))

    def await_end(self):
        """Wait for the end of the standard input."""
        for _ in iter(lambda: os.read(0, 1), b""):
            break
        self.ending.set()

    def report(self, status):
        """Tell the actor how its agent is."""
        with contextlib.suppress(OSError):  # the actor is gone
            os.write(1, (json.dumps(status) + "\n").encode())

    def start_agent(self, more):
        """Start an agent, with more arguments."""
        with open(os.path.join(self.directory, "agent.log"), "ab") as log:
            return subprocess.Popen(
                [self.order["program"], *self.order["args"], *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=agent_environment(self.order["gpus"]),
                cwd="/",
                preexec_fn=self.die_together,
            )

    def die_together(self):
        """Have the system end an agent whose watcher was killed, in the child before it becomes the agent."""
        self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)

    def end_agent(self, agent):
        """End an agent, after the grace of its task by force."""
        patience = task_grace(self.directory) + 10
        agent.terminate()
        try:
            agent.wait(patience)
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()

    def end_rest(self):
        """End what an agent that was killed has left: only another agent finds all of it."""
        rest = self.start_agent(["--end"])
        try:
            rest.wait(END_PATIENCE + task_grace(self.directory))
        except subprocess.TimeoutExpired:
            rest.kill()
            rest.wait()

    def last_line(self):
        """Return the last line of the agent's log."""
        try:
            with open(os.path.join(self.directory, "agent.log"), "rb") as f:
                f.seek(0, os.SEEK_END)
                f.seek(max(0, f.tell() - 4000))
                lines = f.read().decode(errors="replace").split("\n")
        except OSError as e:
            return str(e)
        return next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")


class Host:
    """The actor of one bundle. It starts the watcher and ends with it."""

    def __init__(self):
        self.watcher = None
        self.ended = threading.Event()  # the watcher has
        self.status = ""

    def run(self, order):
        """Serve the host until it was stopped."""
        order["program"] = place_program(os.path.join(os.getcwd(), "fray"), order["digest"])
        order["dir"] = os.path.join(base_dir(), "hosts", order["id"], str(order["host"]))
        import ray

        order["gpus"] = [str(n) for n in ray.get_gpu_ids()]
        order["args"] = agent_args(order, ray.util.get_node_ip_address())
        launcher = subprocess.Popen(
            [sys.executable, os.path.join(os.getcwd(), "fray_driver.py"), "watch", json.dumps(order)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.watcher = launcher.stdin  # closed, by this actor or its end, it ends the watcher
        launcher.wait()
        for line in launcher.stdout:
            self.status = json.loads(line)
        self.ended.set()

    def read_status(self):
        """Return the last status that the watcher has reported."""
        return self.status

    def stop(self):
        """Have the agent end its task and itself; returns once nothing is left."""
        if self.watcher is not None:
            with contextlib.suppress(OSError):
                self.watcher.close()
            self.ended.wait()


def has_tpu_chips():
    """Return whether this node has the devices of TPU chips: simulated nodes have none."""
    return os.path.exists("/dev/accel0") or bool(
        os.path.isdir("/dev/vfio") and set(os.listdir("/dev/vfio")) - {"vfio"}
    )


# The driver.


class Driver:
    """Holds the slice. Main thread only, but for the handler of signals."""

    def __init__(self, metadata):
        self.id = metadata["job_submission_id"]
        self.name, self.attempt = metadata["fray-slice"], int(metadata["fray-attempt"])
        self.launch = json.loads(metadata["fray-launch"])
        self.stopping = threading.Event()
        self.hosts, self.runs, self.nodes = [], [], {}
        self.statuses = {}

    def run(self):
        """Hold the slice until it is stopped or lost."""
        import ray

        ray.init(
            address="auto", namespace=self.launch["namespace"], log_to_driver=False, logging_level="warning"
        )
        signal.signal(signal.SIGTERM, lambda *_: self.stopping.set())
        self.check_fence()
        places = self.reserve()
        self.check_fence()
        self.start(places)
        try:
            self.watch()
        finally:
            self.stop_hosts()

    def check_fence(self):
        """End unless this is the newest submission of the slice: Ray may run one that was stopped."""
        from ray.job_submission import JobSubmissionClient

        jobs = self.read_jobs(JobSubmissionClient("auto"))
        for job in jobs:
            if self.is_later(job.submission_id, job.metadata or {}):
                raise EndedError(WITHDRAWN, f"this submission was withdrawn by {job.submission_id}")

    def is_later(self, submission_id, metadata):
        """Return whether a job is a later submission of this slice, which a copy of its metadata is not."""
        number = metadata.get("fray-attempt", "")
        is_submission = (
            metadata.get("fray-slice") == self.name and submission_id == f"fray_{self.name}_{number}"
        )
        return is_submission and number.isdigit() and int(number) > self.attempt

    def read_jobs(self, client):
        """Return the jobs of this cluster: Ray may have found another one that runs on this machine."""
        deadline = time.monotonic() + FENCE_PATIENCE
        while True:
            try:
                jobs = client.list_jobs()
                if any(job.submission_id == self.id for job in jobs):
                    return jobs
                reason = f"{self.id} is not among them: this driver is connected to another cluster"
            except Exception as e:
                reason = e
            if time.monotonic() > deadline:
                raise EndedError(NO_FENCE, f"the list of jobs cannot be read: {reason}")
            if self.stopping.wait(POLL):
                raise EndedError(0, "stopped")

    # Placement.

    def reserve(self):
        """Wait for the bundles. Returns for each host its group, its bundle and its node."""
        bundles = self.launch["bundles"]
        head = self.launch.get("tpu_head", "")
        if head and len(bundles) > 1:
            first = self.group([{**bundles[0], head: 1}], "-head", None)
            slice_name = self.label(first[0][2], "ray.io/tpu-slice-name")
            selector = [{"ray.io/tpu-slice-name": slice_name}] * (len(bundles) - 1) if slice_name else None
            return self.ordered(first + self.group(bundles[1:], "", selector))
        if head:
            bundles = [{**bundles[0], head: 1}]
        return self.ordered(self.group(bundles, "", None))

    def group(self, bundles, suffix, selector):
        """Wait for a placement group, and return its places."""
        from ray.util.placement_group import placement_group, placement_group_table

        more = {"bundle_label_selector": selector} if selector else {}
        group = placement_group(bundles, strategy="STRICT_SPREAD", name=self.id + suffix, **more)
        while not group.wait(POLL):
            if self.stopping.is_set():
                raise EndedError(0, "stopped")
        nodes = placement_group_table(group)["bundles_to_node_id"]
        return [(group, i, nodes[i], bundles[i]) for i in range(len(bundles))]

    def label(self, node, name):
        """Return the value of a label of a node, "" where it has none."""
        import ray

        return next((n.get("Labels", {}).get(name, "") for n in ray.nodes() if n["NodeID"] == node), "")

    def ordered(self, places):
        """Return hosts in the order of the TPU's workers, where the nodes state it."""
        numbers = [self.label(place[2], "ray.io/tpu-worker-id") for place in places]
        if all(n.isdigit() for n in numbers):
            places = [
                place
                for _, place in sorted(zip(map(int, numbers), places, strict=True), key=lambda each: each[0])
            ]
        return places

    def start(self, places):
        """Start a host in each place."""
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        for n, (group, i, node, bundle) in enumerate(places):
            own = dict(bundle)
            options = {
                "num_cpus": own.pop("CPU", 0),
                "num_gpus": own.pop("GPU", 0),
                "memory": own.pop("memory", None),
                "resources": own or None,
                "max_concurrency": 4,
                "max_restarts": 0,
                "scheduling_strategy": PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=i
                ),
            }
            host = ray.remote(Host).options(**options).remote()
            self.hosts.append(host)
            self.nodes[node] = n
            order = {
                "id": self.id,
                "host": n,
                "digest": self.launch["digest"],
                "tpu": self.launch.get("tpu", ""),
            }
            order["args"] = [*self.launch["args"], "--host", str(n), "--instance", f"{self.id}/{node[:12]}"]
            self.runs.append(host.run.remote(order))

    # Watching.

    def watch(self):
        """Watch hosts and nodes until the slice is stopped or lost."""
        import ray

        while not self.stopping.is_set():
            done, _ = ray.wait(self.runs, timeout=POLL)
            if self.stopping.is_set():
                return
            self.check_nodes(ray.nodes())
            for each in done:
                self.check_host(self.runs.index(each))
            self.read_statuses()

    def check_nodes(self, nodes):
        """End if Ray lists a node of the slice as dead.

        One that it does not list says nothing: a list may be short.
        """
        dead = {n["NodeID"] for n in nodes if not n["Alive"]}
        for node, host in self.nodes.items():
            if node in dead:
                raise EndedError(LOST, f"node {node[:12]} of host {host} died")

    def check_host(self, host):
        """End with the reason for which a host has ended."""
        import ray

        try:
            ray.get(self.runs[host])
        except ray.exceptions.RayTaskError as e:
            raise EndedError(HOST_FAILED, f"host {host} cannot run an agent: {e.cause}") from e
        except ray.exceptions.RayError as e:
            raise EndedError(LOST, f"host {host} was lost: {str(e).splitlines()[0]}") from e
        raise EndedError(HOST_FAILED, f"the watcher of host {host} ended")

    def read_statuses(self):
        """Write what became of agents into the log, where the provider reads it."""
        import ray

        refs = {h.read_status.remote(): n for n, h in enumerate(self.hosts)}
        done, _ = ray.wait(list(refs), num_returns=len(refs), timeout=POLL)
        for ref in done:
            with contextlib.suppress(ray.exceptions.RayError):
                status, n = ray.get(ref), refs[ref]
                if status and self.statuses.get(n) != status:
                    self.statuses[n] = status
                    say(f"host {n}: {status}")

    def stop_hosts(self):
        """Have all hosts end what they run."""
        import ray

        refs = [h.stop.remote() for h in self.hosts]
        deadline = time.monotonic() + STOP_PATIENCE
        while refs and time.monotonic() < deadline:
            alive = {n["NodeID"] for n in ray.nodes() if n["Alive"]}
            if not alive & set(self.nodes):
                return
            _, refs = ray.wait(refs, num_returns=len(refs), timeout=POLL)
            if not self.stopping.is_set() and set(self.nodes) - alive:
                deadline = min(deadline, time.monotonic() + 60)  # hosts of dead nodes do not answer


def main():
    """Run the driver, or with "watch" the watcher of a host."""
    if sys.argv[1:2] == ["watch"]:
        if os.fork() > 0:
            os._exit(0)  # Ray kills the children of an actor that ends, and the watcher has to outlive it
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # only its standard input ends it
        Watcher(json.loads(sys.argv[2])).run()
        return 0
    try:
        Driver(read_metadata()).run()
    except EndedError as e:
        say(e)
        return e.status
    return 0


if __name__ == "__main__":
    sys.exit(main())
