package local_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/actorrpc/registrytest"
	"github.com/fray-ml/fray/schema"
)

func listenEverywhere(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

func TestCheck(t *testing.T) {
	p := newPlace(t)
	project := filepath.Join(p.work, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"run.sh": 0o700, "data.txt": 0o600, "pyproject.toml": 0o600} {
		if err := os.WriteFile(filepath.Join(project, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	busy := listenEverywhere(t)
	bin := t.TempDir()
	if err := os.Symlink("/bin/sh", filepath.Join(bin, "sh")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	command := func(word schema.Text) func(*schema.Job) {
		return func(j *schema.Job) { j.Command = []schema.Text{word} }
	}
	for _, test := range []struct {
		name   string
		change func(*schema.Job)
		want   []string // attribute: summary
	}{
		{"program on PATH", func(*schema.Job) {}, nil},
		{"no such program", command(schema.Plain("no-such-program")), []string{"command: Command not found"}},
		{"secret", command(schema.Secret("no-such-program")), nil},
		{"unknown", command(schema.UnknownText()), nil},
		{"no such file", command(schema.Plain("./run.sh")), []string{"command: Command not found"}},
		{"file of the project", func(j *schema.Job) {
			j.Environment.Project = project
			j.Command = []schema.Text{schema.Plain("./run.sh")}
		}, nil},
		{"project by relative path", func(j *schema.Job) {
			j.Environment.Project = "project"
			j.Command = []schema.Text{schema.Plain("./run.sh")}
		}, nil},
		{"not executable", func(j *schema.Job) {
			j.Environment.Project = project
			j.Command = []schema.Text{schema.Plain("./data.txt")}
		}, []string{"command: Command is not executable"}},
		{"PATH of the job", func(j *schema.Job) {
			j.Environment.Env = map[string]schema.Text{"PATH": schema.Plain("/nowhere")}
		}, []string{"command: Command not found"}},
		{"free port", func(j *schema.Job) { j.Resources.Ports = []schema.Port{{Name: "http"}} }, nil},
		{"port in use", func(j *schema.Job) { j.Resources.Ports = []schema.Port{{Name: "http", Number: busy}} },
			[]string{"resources.ports: Port is in use"}},
		{"no uv, no lock file", func(j *schema.Job) {
			j.Environment.Project = project
			j.Environment.UV = &schema.UV{}
			j.Command = []schema.Text{schema.Plain("comes-with-uv")}
		}, []string{"environment.uv: uv is not installed", "environment.uv: Project cannot be used"}},
		{"another provider's", func(j *schema.Job) {
			j.Resources.Provider = schema.ProviderGCP
			j.Command = []schema.Text{schema.Plain("no-such-program")}
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			job := schema.Job{
				Addr:      schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(0)},
				Resources: schema.Resources{Provider: schema.ProviderLocal},
				Command:   []schema.Text{schema.Plain("sh")},
			}
			test.change(&job)
			again := job
			again.Addr.Key = schema.IntKey(1)
			var got []string
			for _, problem := range p.provider().Check(t.Context(), schema.Desired{Jobs: []schema.Job{job, again}}) {
				got = append(got, problem.Attribute+": "+problem.Summary)
				if problem.Addr != job.Addr || problem.Detail == "" {
					t.Errorf("problem %+v has no place or nothing to do", problem)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// A task that runs already has its port; that is no reason to reject it.
func TestOwnPortsAreNotInUse(t *testing.T) {
	p := newPlace(t)
	provider, one := p.provider(), spec("one", 1)
	p.up(provider, one)
	number, err := registrytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	p.ports = []schema.Port{{Name: "http", Number: number}}
	p.assign(one, 1, "exec sleep 1000")
	p.awaitTasks(one, 1, schema.TaskRunning)
	// The test listens in the place of the task.
	l, err := net.Listen("tcp", ":"+strconv.Itoa(number))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	desired := schema.Desired{Jobs: []schema.Job{{
		Addr:      schema.Address{Kind: schema.KindJob, Name: "j"},
		Command:   []schema.Text{schema.Plain("sh")},
		Resources: schema.Resources{Provider: schema.ProviderLocal, Ports: p.ports},
	}}}
	if problems := provider.Check(t.Context(), desired); len(problems) > 0 {
		t.Errorf("with the task alive: %+v", problems)
	}
	p.down(provider, one)
	if problems := provider.Check(t.Context(), desired); len(problems) != 1 {
		t.Errorf("with the task gone: %+v", problems)
	}
}
