"""Use an emulated cloud, the address of which is the argument, by Google's own clients."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import grpc
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1 as compute
from google.cloud import storage, tpu_v2, tpu_v2alpha1
from google.longrunning import operations_pb2

PROJECT, ZONE = "acme-research", "us-west4-a"
PARENT = f"projects/{PROJECT}/locations/{ZONE}"


def equal(what: str, got: object, want: object) -> None:
    """Fail unless a client got what it should."""
    if got != want:
        raise AssertionError(f"{what}: got {got!r}, want {want!r}")


def raises(what: str, kind: type[Exception], text: str, call: Callable[[], object]) -> None:
    """Fail unless a call fails with an error that has a text."""
    try:
        got = call()
    except kind as error:
        if text not in str(error):
            raise AssertionError(f"{what}: {error}, want {text!r}") from error
        return
    raise AssertionError(f"{what}: got {got!r}, want {kind.__name__}")


def buckets(url: str) -> None:
    """Use Cloud Storage."""
    os.environ["STORAGE_EMULATOR_HOST"] = url
    client = storage.Client(project=PROJECT, credentials=AnonymousCredentials())
    bucket = client.create_bucket("google-clients")
    blob = bucket.blob("a/b")
    blob.upload_from_string("hello", if_generation_match=0)
    raises(
        "a second creation",
        exceptions.PreconditionFailed,
        "412",
        lambda: blob.upload_from_string("x", if_generation_match=0),
    )
    equal("the content", blob.download_as_bytes(), b"hello")
    large = bucket.blob("large", chunk_size=1 << 18)
    large.upload_from_string(b"z" * (1 << 20))
    equal("a range", large.download_as_bytes(start=3, end=9), b"z" * 7)
    equal("a list", [b.name for b in client.list_blobs(bucket, prefix="a/")], ["a/b"])
    blob.metadata = {"k": "v"}
    blob.patch()
    blob.update()
    equal("metadata", client.get_bucket("google-clients").get_blob("a/b").metadata, {"k": "v"})

    composed = bucket.blob("composed")
    composed.compose([blob, bucket.copy_blob(blob, bucket, "copied")], if_generation_match=0)
    equal(
        "a composition",
        (composed.download_as_bytes(), composed.component_count, composed.md5_hash),
        (b"hellohello", 2, None),
    )
    raises(
        "a composition of another generation",
        exceptions.PreconditionFailed,
        "412",
        lambda: bucket.blob("never").compose([blob], if_source_generation_match=[1]),
    )
    raises(
        "a composition of an object that is not there",
        exceptions.NotFound,
        "404",
        lambda: bucket.blob("never").compose([bucket.blob("none")]),
    )
    equal("a rewrite", bucket.blob("rewritten").rewrite(blob), (None, 5, 5))
    equal("metadata of a rewrite", bucket.get_blob("rewritten").metadata, {"k": "v"})
    bucket.rename_blob(bucket.blob("copied"), "renamed")
    equal("permissions", bucket.test_iam_permissions(["storage.objects.get"]), ["storage.objects.get"])
    equal("the service's account", "gs-project-accounts" in client.get_service_account_email(), True)
    equal(
        "objects",
        sorted(b.name for b in client.list_blobs(bucket)),
        ["a/b", "composed", "large", "renamed", "rewritten"],
    )
    bucket.delete(force=True)
    equal("a deleted bucket", bucket.exists(), False)


def tpus(url: str, api: Any) -> None:
    """Use the Cloud TPU API in one of its versions."""
    version = api.__name__.rpartition(".")[2].removeprefix("tpu_")
    channel = grpc.insecure_channel(url.removeprefix("http://"))
    client = api.TpuClient(transport=api.services.tpu.transports.TpuGrpcTransport(channel=channel))
    name = f"{PARENT}/nodes/{version}"

    def node(size: int) -> Any:
        return api.Node(
            accelerator_type=f"v5litepod-{size}",
            runtime_version="v2-alpha-tpuv5-lite",
            labels={"a": "1"},
            network_config=api.NetworkConfig(enable_external_ips=True),
            scheduling_config=api.SchedulingConfig(spot=True),
        )

    created = client.create_node(parent=PARENT, node_id=version, node=node(4)).result(timeout=60)
    equal(
        "a node",
        (created.name, created.state, created.network_config.enable_external_ips),
        (name, api.Node.State.READY, True),
    )
    equal("labels", dict(client.get_node(name=name).labels), {"a": "1"})
    updated = client.update_node(
        node=api.Node(name=name, labels={"b": "2"}), update_mask={"paths": ["labels"]}
    ).result(timeout=60)
    equal("new labels", dict(updated.labels), {"b": "2"})
    stopped = client.stop_node(api.StopNodeRequest(name=name)).result(timeout=60)
    equal("a stopped node", stopped.state, api.Node.State.STOPPED)
    started = client.start_node(api.StartNodeRequest(name=name)).result(timeout=60)
    equal("a started node", started.state, api.Node.State.READY)

    # In v2alpha1 and v2 these fields have different numbers.
    spec = api.QueuedResource.Tpu.NodeSpec(parent=PARENT, node=node(16))
    if version == "v2":
        spec.multislice_params = api.QueuedResource.Tpu.NodeSpec.MultisliceParams(
            node_count=2, node_id_prefix=version + "-pod"
        )
    else:
        spec.multi_node_params = api.QueuedResource.Tpu.NodeSpec.MultiNodeParams(
            node_count=2, node_id_prefix=version + "-pod"
        )
    queued = api.QueuedResource(tpu=api.QueuedResource.Tpu(node_spec=[spec]), spot=api.QueuedResource.Spot())
    client.create_queued_resource(parent=PARENT, queued_resource_id=version, queued_resource=queued).result(
        timeout=60
    )
    queued_name = f"{PARENT}/queuedResources/{version}"
    active = api.QueuedResourceState.State.ACTIVE
    while (shown := client.get_queued_resource(name=queued_name)).state.state != active:
        time.sleep(0.05)  # the cloud goes on by itself
    equal("the tier of a queued resource", "spot" in shown, True)
    pods = [n for n in client.list_nodes(parent=PARENT) if n.queued_resource.endswith("/" + version)]
    equal(
        "its nodes", sorted(n.name.rpartition("/")[2] for n in pods), [version + "-pod-0", version + "-pod-1"]
    )
    equal("hosts of a node", len(pods[0].network_endpoints), 4)
    raises(
        "a stop of several hosts",
        exceptions.InvalidArgument,
        "4 hosts",
        lambda: client.stop_node(api.StopNodeRequest(name=pods[0].name)),
    )
    client.delete_queued_resource(api.DeleteQueuedResourceRequest(name=queued_name, force=True)).result(
        timeout=60
    )
    client.delete_node(name=name).result(timeout=60)
    raises("a deleted node", exceptions.NotFound, name, lambda: client.get_node(name=name))
    raises(
        "an operation that is not there",
        exceptions.NotFound,
        "operations/none",
        lambda: client.get_operation(operations_pb2.GetOperationRequest(name=PARENT + "/operations/none")),
    )
    equal("types", "v5litepod-16" in [t.type_ for t in client.list_accelerator_types(parent=PARENT)], True)
    equal(
        "zones",
        ZONE in [z.location_id for z in client.list_locations({"name": "projects/" + PROJECT}).locations],
        True,
    )


class Compute:
    """Clients of Compute Engine, by REST."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.operations = self.client("ZoneOperations")
        self.global_operations = self.client("GlobalOperations")

    def client(self, name: str) -> Any:
        """Connect the client of one kind of resource."""
        client = getattr(compute, name + "Client")
        transport = client.get_transport_class("rest")
        return client(
            transport=transport(host=self.url, credentials=AnonymousCredentials(), url_scheme="http")
        )

    def wait(self, operation: Any) -> None:
        """Wait by a client of its own: that of the operation would ask Google."""
        if operation.zone:
            while (
                self.operations.wait(project=PROJECT, zone=ZONE, operation=operation.name).status
                != compute.Operation.Status.DONE
            ):
                pass
        else:
            while (
                self.global_operations.wait(project=PROJECT, operation=operation.name).status
                != compute.Operation.Status.DONE
            ):
                pass


def machines(url: str) -> None:
    """Use Compute Engine."""
    cloud = Compute(url)
    instances = cloud.client("Instances")
    disk = compute.AttachedDisk(
        boot=True,
        initialize_params=compute.AttachedDiskInitializeParams(
            source_image="projects/debian-cloud/global/images/family/debian-12"
        ),
    )

    def machine(network: compute.NetworkInterface) -> dict[str, Any]:
        return {"machine_type": "n2-standard-8", "disks": [disk], "network_interfaces": [network]}

    root = f"https://www.googleapis.com/compute/v1/projects/{PROJECT}/"
    for i, network in enumerate(
        [
            compute.NetworkInterface(network="global/networks/default"),
            compute.NetworkInterface(network=f"projects/{PROJECT}/global/networks/default"),
            compute.NetworkInterface(
                network=root + "global/networks/default", subnetwork="regions/us-west4/subnetworks/default"
            ),
        ]
    ):
        resource = compute.Instance(name=f"vm-{i}", **machine(network))
        resource.machine_type = [
            f"zones/{ZONE}/machineTypes/n2-standard-8",
            root + f"zones/{ZONE}/machineTypes/n2-standard-8",
            f"projects/{PROJECT}/zones/{ZONE}/machineTypes/n2-standard-8",
        ][i]
        cloud.wait(instances.insert(project=PROJECT, zone=ZONE, instance_resource=resource))
        equal("the machine", instances.get(project=PROJECT, zone=ZONE, instance=f"vm-{i}").status, "RUNNING")
    equal(
        "machines",
        sorted(i.name for i in instances.list(project=PROJECT, zone=ZONE)),
        ["vm-0", "vm-1", "vm-2"],
    )
    cloud.wait(instances.delete(project=PROJECT, zone=ZONE, instance="vm-0"))
    raises(
        "a deleted machine",
        exceptions.NotFound,
        "vm-0",
        lambda: instances.get(project=PROJECT, zone=ZONE, instance="vm-0"),
    )

    templates, managers = cloud.client("InstanceTemplates"), cloud.client("InstanceGroupManagers")
    properties = compute.InstanceProperties(
        **machine(compute.NetworkInterface(network="global/networks/default"))
    )
    template = compute.InstanceTemplate(name="tpl", properties=properties)
    cloud.wait(templates.insert(project=PROJECT, instance_template_resource=template))
    partial = "global/instanceTemplates/tpl"
    for i, link in enumerate([partial, f"projects/{PROJECT}/{partial}", root + partial]):
        group = compute.InstanceGroupManager(
            name=f"group-{i}", base_instance_name=f"group-{i}", target_size=2, instance_template=link
        )
        cloud.wait(managers.insert(project=PROJECT, zone=ZONE, instance_group_manager_resource=group))
    equal(
        "groups",
        [(g.name, g.target_size) for g in managers.list(project=PROJECT, zone=ZONE)],
        [(f"group-{i}", 2) for i in range(3)],
    )
    raises(
        "a template that is not there",
        exceptions.BadRequest,
        "cannot be found",
        lambda: managers.insert(
            project=PROJECT,
            zone=ZONE,
            instance_group_manager_resource=compute.InstanceGroupManager(
                name="never",
                base_instance_name="never",
                target_size=1,
                instance_template="global/instanceTemplates/none",
            ),
        ),
    )


def gpus(url: str) -> None:
    """Use machines with GPUs."""
    cloud = Compute(url)
    zone = "us-central1-a"
    kinds = {t.name: t for t in cloud.client("MachineTypes").list(project=PROJECT, zone=zone)}
    cards = kinds["a3-highgpu-8g"].accelerators[0]
    equal(
        "the GPUs of a machine type",
        (cards.guest_accelerator_type, cards.guest_accelerator_count),
        ("nvidia-h100-80gb", 8),
    )
    names = [a.name for a in cloud.client("AcceleratorTypes").list(project=PROJECT, zone=zone)]
    equal(
        "accelerators",
        [name for name in ("nvidia-l4", "nvidia-tesla-t4") if name in names],
        ["nvidia-l4", "nvidia-tesla-t4"],
    )

    def machine(count: int) -> compute.Instance:
        return compute.Instance(
            name="gpu-vm",
            machine_type=f"zones/{zone}/machineTypes/n1-standard-8",
            disks=[compute.AttachedDisk(boot=True)],
            network_interfaces=[compute.NetworkInterface(network="global/networks/default")],
            guest_accelerators=[
                compute.AcceleratorConfig(
                    accelerator_type=f"zones/{zone}/acceleratorTypes/nvidia-tesla-t4", accelerator_count=count
                )
            ],
            scheduling=compute.Scheduling(on_host_maintenance="TERMINATE", provisioning_model="SPOT"),
        )

    instances = cloud.client("Instances")
    raises(
        "three GPUs on a machine",
        exceptions.BadRequest,
        "features are not compatible for creating instance",
        lambda: instances.insert(project=PROJECT, zone=zone, instance_resource=machine(3)),
    )
    instances.insert(project=PROJECT, zone=zone, instance_resource=machine(2))
    while instances.get(project=PROJECT, zone=zone, instance="gpu-vm").status != "RUNNING":
        time.sleep(0.05)  # the cloud goes on by itself
    shown = instances.get(project=PROJECT, zone=zone, instance="gpu-vm").guest_accelerators
    equal(
        "attached GPUs",
        [(c.accelerator_type.rpartition("/")[2], c.accelerator_count) for c in shown],
        [("nvidia-tesla-t4", 2)],
    )


def main() -> None:
    """Use every service."""
    url = sys.argv[1]
    buckets(url)
    tpus(url, tpu_v2alpha1)
    tpus(url, tpu_v2)
    machines(url)
    gpus(url)


if __name__ == "__main__":
    main()
