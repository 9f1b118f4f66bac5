package container

import (
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/hostdir"
)

func TestContainerFlags(t *testing.T) {
	for _, test := range []struct {
		tpu  bool
		want []string
	}{
		{true, []string{"--privileged", "memlock=68719476736", "host", "100g"}},
		{false, []string{"host", "100g"}},
	} {
		flags := Task{
			Container: hostdir.Container{Runtime: "/usr/bin/docker", Name: "fray-k"}, CacheDir: "/cache", Key: "k", TPU: test.tpu,
		}.Flags()
		for _, want := range []string{"--privileged", "memlock=68719476736", "host", "100g"} {
			if got := slices.Contains(flags, want); got != slices.Contains(test.want, want) {
				t.Errorf("TPU %v: %s among the flags: %v\n%v", test.tpu, want, got, flags)
			}
		}
	}
}

// TestContainersGetTheirGPUs: by the flags of each runtime, and no others.
func TestContainersGetTheirGPUs(t *testing.T) {
	for _, test := range []struct {
		runtime string
		gpus    []string
		want    string // in a row among the flags
	}{
		{"/usr/bin/docker", []string{"0", "3"}, `--gpus "device=0,3"`},
		{"/usr/bin/docker", []string{"GPU-8e1"}, `--gpus "device=GPU-8e1"`},
		{"/usr/bin/podman", []string{"0", "3"}, "--device nvidia.com/gpu=0 --device nvidia.com/gpu=3"},
		{"/usr/bin/docker", nil, ""},
		{"/usr/bin/podman", nil, ""},
	} {
		task := Task{Container: hostdir.Container{Runtime: test.runtime, Name: "fray-k"}, GPUs: test.gpus}
		flags := strings.Join(task.Flags(), " ")
		if !strings.Contains(flags, test.want) {
			t.Errorf("%s with the GPUs %v: got %s, want %s among them", test.runtime, test.gpus, flags, test.want)
		}
		if test.gpus == nil && (strings.Contains(flags, "--gpus") || strings.Contains(flags, "--device")) {
			t.Errorf("%s without GPUs: got %s", test.runtime, flags)
		}
	}
}

func TestRegistryOf(t *testing.T) {
	for image, want := range map[string]string{
		"python:3.12": "", "library/python": "", "gcr.io/a/b:1": "gcr.io", "us-docker.pkg.dev/p/r/i@sha256:1": "us-docker.pkg.dev",
		"localhost/x": "localhost", "registry:5000/x": "registry:5000",
	} {
		if got := registryOf(image); got != want {
			t.Errorf("%s comes from %q, want %q", image, got, want)
		}
	}
}

// TestContainersSeeTheIdentity: its directory is mounted, where there is one, and
// cannot be changed from inside.
func TestContainersSeeTheIdentity(t *testing.T) {
	c := Task{Container: hostdir.Container{Runtime: "docker"}}
	const mount = "/host/identity:/host/identity:ro"
	if slices.Contains(c.Flags(), mount) {
		t.Error("what is not there is mounted")
	}
	c.Identity = "/host/identity"
	flags := c.Flags()
	if at := slices.Index(flags, mount); at < 1 || flags[at-1] != "--volume" {
		t.Errorf("got the flags %q, want --volume %s among them", flags, mount)
	}
}
