package ray_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/providertest"
	"github.com/fray-ml/fray/providers/ray"
	"github.com/fray-ml/fray/providers/ray/raytest"
	"github.com/fray-ml/fray/schema"
)

// TestRealSlice has a slice of two hosts run a task on a real Ray cluster.
func TestRealSlice(t *testing.T) {
	c := raytest.Start(t, python(t), raytest.Node{CPUs: 2}, raytest.Node{CPUs: 2, GPUs: 2})
	p := newPlace(t, c)
	provider, s := p.provider(), spec("one", 2)
	p.up(provider, s)
	ran := t.TempDir()
	p.assign(s, 1, "touch "+ran+"/$FRAY_TASK_INDEX")
	p.eventually("both tasks to run", func() bool {
		entries, err := os.ReadDir(ran)
		return err == nil && len(entries) == 2
	})
	if st := p.status(provider, s); st.Phase != schema.SliceReady {
		t.Errorf("it is listed as %+v", st)
	}
	large := spec("large", 1)
	large.CPU = 64
	if err := provider.Create(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	p.eventually("the reason of one that no node can hold", func() bool {
		st := p.status(provider, large)
		return st.Waiting && strings.Contains(st.Reason, "no node has 64 CPU; the most that one has is 2 CPU")
	})
	p.down(provider, large)
	sharedGPUs(p, provider)
	p.down(provider, s)
	if left := p.left(s.Name, 2); len(left) > 0 {
		t.Errorf("it is gone but left %v", left)
	}
}

// sharedGPUs has two slices on one node with two GPUs: no GPU is given out twice.
func sharedGPUs(p *place, provider *ray.Provider) {
	p.t.Helper()
	both := []schema.SliceSpec{spec("first", 1), spec("second", 1)}
	for i := range both { // at once, which takes half the time
		both[i].CPU, both[i].GPU = 0, schema.GPU{Count: 1}
		if err := provider.Create(p.t.Context(), both[i]); err != nil {
			p.t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, slice := range both {
		p.up(provider, slice)
		file := filepath.Join(p.t.TempDir(), "gpus")
		p.assign(slice, 1, `echo "$CUDA_VISIBLE_DEVICES" >`+file+`.new && mv `+file+`.new `+file)
		p.eventually("the task of "+slice.Name, func() bool {
			text, err := os.ReadFile(file)
			seen[strings.TrimSpace(string(text))] = true
			return err == nil
		})
		delete(seen, "") // of readings before there was a file
	}
	if !seen["0"] || !seen["1"] {
		p.t.Errorf("the tasks see the GPUs %v, want 0 and 1", seen)
	}
}

// TestRealGPU has two slices share the GPUs of a node, and a third wait for one of them.
func TestRealGPU(t *testing.T) {
	long(t)
	p := newPlace(t, raytest.Start(t, python(t),
		raytest.Node{CPUs: 4, GPUs: 2, Resources: map[string]float64{"accelerator_type:H100": 1}}))
	provider, seen := p.provider(), t.TempDir()
	ofGPU := func(name string) schema.SliceSpec {
		s := spec(name, 1)
		s.GPU = schema.GPU{Type: "h100", Count: 1}
		return s
	}
	read := func(s schema.SliceSpec) string {
		p.assign(s, 1, "echo $CUDA_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $JAX_NUM_PROCESSES >"+seen+"/part; mv "+seen+"/part "+seen+"/"+s.Name)
		var found []byte
		p.eventually("its task to run", func() bool {
			data, err := os.ReadFile(filepath.Join(seen, s.Name))
			found = data
			return err == nil
		})
		return strings.TrimSpace(string(found))
	}
	one, two, three := ofGPU("one"), ofGPU("two"), ofGPU("three")
	p.up(provider, one)
	p.up(provider, two)
	found := []string{read(one), read(two)}
	slices.Sort(found)
	if want := []string{"0 0 1", "1 1 1"}; !slices.Equal(found, want) {
		t.Errorf("tasks see the GPUs %q, want %q", found, want)
	}
	if err := provider.Create(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.down(provider, three) })
	p.eventually("the third to wait with a reason", func() bool {
		st := p.status(provider, three)
		return st.Waiting && st.Reason != ""
	})
	p.down(provider, one)
	p.eventually("the third to have a GPU", func() bool { return p.reported(three.Name, 1) == 1 })
	if got := read(three); got != "0 0 1" && got != "1 1 1" {
		t.Errorf("the third sees the GPUs %q", got)
	}
}

// TestRealConformance runs the suite of all providers on a real Ray cluster of three nodes.
func TestRealConformance(t *testing.T) {
	long(t)
	c := raytest.Start(t, python(t), raytest.Node{CPUs: 16}, raytest.Node{CPUs: 16})
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		p := newPlace(t, c)
		return providertest.Harness{
			Provider: p.provider(),
			Reopen:   func() providers.Provider { return p.provider() },
			Spec:     spec("", 2),
			Reported: func(_ context.Context, slice string) int { return p.reported(slice, 2) },
			Left:     func(slice string) []string { return p.left(slice, 2) },
			// It dies before it has learnt that it was accepted.
			CrashCreate: func(s schema.SliceSpec) { _ = p.provider().Create(t.Context(), s) },
			Damage:      func(slice string) { damage(t, p, slice) },
			Patience:    patience,
		}
	})
}

// damage submits a job that has the marks of a slice and no spec.
func damage(t *testing.T, p *place, slice string) {
	t.Helper()
	for n := 1; ; n++ {
		id := "fray_" + slice + "_" + strconv.Itoa(n)
		body := `{"entrypoint": "true", "submission_id": "` + id + `", "metadata": {
			"fray-stack": "stack-a", "fray-slice": "` + slice + `", "fray-attempt": "` + strconv.Itoa(n) + `", "fray-spec": "{"}}`
		if p.cluster.Post(t, "/api/jobs/", body) == http.StatusOK {
			break
		}
	}
	t.Cleanup(func() { p.down(p.provider(), spec(slice, 2)) })
}
