package agent

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/schema"
)

// containerRig is a host that is a machine of its own, with a container runtime.
type containerRig struct {
	*rig
	image  string
	client string      // program of the runtime
	docker *fakeDocker // nil: the runtime is a real one
}

// containerTest runs a test with each runtime that there is.
func containerTest(t *testing.T, test func(t *testing.T, r *containerRig)) {
	t.Run("docker", func(t *testing.T) {
		bin := t.TempDir()
		d := newFakeDocker(t, bin)
		d.images["img"] = true
		test(t, newContainerRig(t, bin, &containerRig{image: "img", client: filepath.Join(bin, "docker"), docker: d}))
	})
	t.Run("podman", func(t *testing.T) {
		bin := t.TempDir()
		client, image := realPodman(t, bin)
		test(t, newContainerRig(t, bin, &containerRig{image: image, client: client}))
	})
}

func newContainerRig(t *testing.T, bin string, c *containerRig, env ...string) *containerRig {
	t.Helper()
	c.rig = newRig(t)
	c.path = bin + ":" + os.Getenv("PATH")
	c.env = env
	c.killAgent()
	c.startAgent("--simulated=false")
	return c
}

// realPodman makes a podman with an image of a static shell, or skips.
func realPodman(t *testing.T, bin string) (client, image string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	podman, missing := exec.LookPath("podman")
	if err != nil || missing != nil {
		t.Skip("there is no podman, or no static shell for an image")
	}
	root := t.TempDir()
	sum := sha256.Sum256([]byte(root)) // tests run at the same time, and each removes its own
	image, client = fmt.Sprintf("localhost/fray-agent-test:%x", sum[:4]), filepath.Join(bin, "podman")
	script := "mkdir bin && cp " + busybox + " bin/busybox && for a in sh sleep cat echo env test; do ln -s busybox bin/$a; done && tar -c . | " +
		podman + " import --quiet - " + image
	build := exec.CommandContext(t.Context(), "sh", "-c", script)
	build.Dir = root
	if output, err := build.CombinedOutput(); err != nil {
		t.Skipf("no image can be made here: %s", output)
	}
	t.Cleanup(func() {
		if output, err := exec.Command(podman, "rmi", "--force", image).CombinedOutput(); err != nil {
			t.Errorf("remove image: %v: %s", err, output)
		}
	})
	// Machines without CAP_SYS_RESOURCE, or with an old hierarchy of cgroups,
	// need flags of their own.
	limits := filepath.Join(root, "containers.conf")
	if err := os.WriteFile(limits, []byte("[containers]\ndefault_ulimits=[]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := "export CONTAINERS_CONF=" + limits + "\n[ \"$1\" = run ] || exec " + podman + " --runtime runc \"$@\"\n" +
		"shift\nexec " + podman + ` --runtime runc run --ulimit host "$@"`
	for _, wrapper := range []string{"exec " + podman + ` "$@"`, own} {
		if err := writeProgram(client, "#!/bin/sh\n"+wrapper+"\n"); err != nil {
			t.Fatal(err)
		}
		try := exec.CommandContext(t.Context(), client, "run", "--rm", "--pull", "never", "--network", "host", image, "/bin/sh", "-c", "true")
		if output, err := try.CombinedOutput(); err == nil {
			return client, image
		} else if wrapper == own {
			t.Skipf("podman runs no containers here: %s", output)
		}
	}
	return "", ""
}

// job is a job that runs a shell script in the image.
func (r *containerRig) job(script string) schema.Job {
	spec := job(script)
	spec.Environment.Image = r.image
	return spec
}

// runsUp assigns a job until it runs and has said that it is up. It returns the
// generation.
func (r *containerRig) runsUp(spec schema.Job) int64 {
	r.t.Helper()
	gen := r.assign(&spec)
	r.awaitTask(gen, schema.TaskRunning)
	r.awaitOutput("up")
	return gen
}

// sealed is a secret as an assignment has it.
func sealed(t *testing.T, secret string) schema.Text {
	t.Helper()
	text, err := schema.Secret(secret).Seal(rot{})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// containers are those of this host.
func (r *containerRig) containers() string {
	r.t.Helper()
	mark := (&hostdir.Dir{Path: r.dir}).HostMark()
	output, err := exec.Command(r.client, "ps", "--all", "--quiet", "--filter", "label=fray-host="+mark).Output()
	if err != nil {
		r.t.Fatal(err)
	}
	return string(output)
}

func (r *containerRig) wantNoContainer() {
	r.t.Helper()
	if left := r.containers(); left != "" {
		r.t.Errorf("containers %q are left", left)
	}
}

func (r *containerRig) awaitOutput(text string) {
	r.t.Helper()
	eventually(r.t, "output "+text, func() bool { return strings.Contains(r.output(), text) }, func() string { return r.output() })
}
