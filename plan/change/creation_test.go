package change

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
)

// drawJobs draws jobs of which many differ in little, as instances of one block do.
func drawJobs(t *rapid.T) []schema.Job {
	words := rapid.SampledFrom([]schema.Text{schema.Plain("true"), schema.Plain(`<"é\>`), schema.UnknownText()})
	var jobs []schema.Job
	for i := range rapid.IntRange(1, 8).Draw(t, "jobs") {
		j := schema.Job{Namespace: "n", Resources: schema.Resources{Provider: "local", CPU: 1, Slices: 1}}
		if i > 0 {
			j = jobs[i-1]
		}
		j.Addr = schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(i)}
		j.Command = rapid.SliceOfN(words, 0, 2).Draw(t, "command")
		switch rapid.IntRange(0, 9).Draw(t, "differs in") {
		case 0:
			j.Resources.CPU = rapid.SampledFrom([]float64{1, 0.5, 1e16}).Draw(t, "cpu")
		case 1:
			j.Environment.Env = map[string]schema.Text{"KEY": schema.Plain(fmt.Sprint(i))}
		case 2:
			j.Timeout++
		case 3:
			j.Lifecycle.PreventDestroy = !j.Lifecycle.PreventDestroy
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// TestCreations: what jobs share in memory, each has the attributes that it has by itself.
func TestCreations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Creations
		jobs := drawJobs(t)
		got := make([]any, len(jobs))
		for i := range jobs {
			got[i] = c.Of(&jobs[i])
		}
		for i := range jobs { // all of them: a later one must not change a former one
			if diff := cmp.Diff(any(ChangedAttrs(nil, JobAttrs(&jobs[i]))), got[i]); diff != "" {
				t.Fatalf("job %d (-by itself +shared):\n%s", i, diff)
			}
		}
	})
}

// TestCreationsShare: instances of one block that differ in their commands keep one
// attribute each.
func TestCreationsShare(t *testing.T) {
	var c Creations
	instance := func(i int) *schema.Job {
		return &schema.Job{Namespace: "n", Command: []schema.Text{schema.Plain(fmt.Sprint(i))}, Resources: schema.Resources{Slices: 1}}
	}
	first, second := c.Of(instance(1)), c.Of(instance(2))
	if first[0] == second[0] || first[1] != second[1] {
		t.Errorf("the commands are one attribute: %t, the namespaces: %t; want neither and both", first[0] == second[0], first[1] == second[1])
	}
	if third := c.Of(instance(2)); &third[0] != &second[0] {
		t.Error("two equal jobs have lists of their own")
	}
}

// TestDigester: a digest is that of the job by itself.
func TestDigester(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d schema.Digester
		jobs := drawJobs(t)
		for i := range jobs {
			got, err := d.Of(&jobs[i])
			want, wantErr := schema.DigestOf(&jobs[i])
			if got != want || err != nil || wantErr != nil {
				t.Fatalf("job %d: got %s (%v), want %s (%v)", i, got, err, want, wantErr)
			}
		}
		jobs[0].Command = []schema.Text{schema.Secret("in clear")}
		if got, err := d.Of(&jobs[0]); err == nil {
			t.Fatalf("a secret in clear has the digest %s, want an error", got)
		}
	})
}
