package incremental

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	frayplan "github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// TestScripts plays each testdata/script/*.txtar in a world and compares what
// happened, step by step, with its golden. A script is a comment, then:
//
//	job NAME [SETTING=VALUE...]  declare a job, GROUP/NAME in a group, or change it
//	drop NAME                    declare it no more
//	pool NAME SLICES [TPU]       declare a reservation
//	limit SLICES                 limit the provider
//	apply                        accept what is declared
//	run DURATION                 let time pass
//	fail|kill-agent|kill-host|mute JOB SLICE HOST, preempt|vanish JOB SLICE
//	replace|stop JOB, crash, capacity SLICES, unreachable BOOL
//
// Settings: env, tpu, cpu, slices, pool, after, failures, preemptions, and
// exits=AFTER/CODE, of every attempt or exits=AFTER/CODE,… of one after another.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(archive.Files[0].Data))
			if *update {
				archive.Files = []txtar.File{archive.Files[0], {Name: "happened", Data: []byte(got)}}
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := string(archive.Files[1].Data); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s\n(-update rewrites it)", file, got, want)
			}
		})
	}
}

type player struct {
	*world
	t       *testing.T
	began   time.Time
	jobs    map[string]schema.Job
	exits   map[schema.Address][]program
	pools   []schema.Reservation
	limit   int
	out     strings.Builder
	status  map[schema.Address]string
	changes string
}

func play(t *testing.T, script string) string {
	p := &player{
		world: newWorld(t), t: t,
		jobs: map[string]schema.Job{}, exits: map[schema.Address][]program{},
		status: map[schema.Address]string{},
	}
	p.began = p.now
	p.program = func(run *state.Run, _ int) program {
		if does := p.exits[run.Job]; len(does) > 0 {
			return does[min(run.Attempt, len(does))-1]
		}
		return program{}
	}
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&p.out, "> %s\n", line)
		p.command(strings.Fields(line))
	}
	return p.out.String()
}

func (p *player) command(args []string) {
	switch verb, rest := args[0], args[1:]; verb {
	case "job":
		p.jobs[rest[0]] = p.job(rest[0], rest[1:])
	case "drop":
		delete(p.jobs, rest[0])
	case "pool":
		p.pools = []schema.Reservation{newPool(rest[0], strings.Join(rest[2:], ""), p.number(rest[1]))}
	case "limit":
		p.limit = p.number(rest[0])
	case "apply":
		desired := configuration(slices.Collect(maps.Values(p.jobs))...)
		if len(p.pools) > 0 {
			desired = withPools(desired, p.pools...)
		}
		p.accept(limited(desired, p.limit))
	case "run":
		d, err := time.ParseDuration(rest[0])
		if err != nil {
			p.t.Fatal(err)
		}
		for end := p.now.Add(d); p.now.Before(end); {
			at := p.now
			p.tell(at, p.step(500*time.Millisecond))
		}
	case "crash":
		p.crash()
	case "capacity":
		p.capacity = p.number(rest[0])
	case "unreachable":
		p.unreachable = rest[0] == "true"
	case "replace":
		p.mark(named(rest[0]), func(j *state.Job) { j.Replace = true })
	case "stop":
		p.mark(named(rest[0]), func(j *state.Job) { j.Stop = true })
	default:
		p.fault(verb, rest)
	}
}

func (p *player) fault(verb string, args []string) {
	slice := p.sliceOf(named(args[0]), p.number(args[1]))
	host := 0
	if len(args) > 2 {
		host = p.number(args[2])
	}
	switch verb {
	case "fail":
		p.fail(slice, host, 1)
	case "kill-agent":
		p.killAgent(slice, host)
	case "kill-host":
		p.killHost(slice, host)
	case "mute":
		p.mute(slice, host, true)
	case "preempt":
		p.preempt(slice)
	case "vanish":
		p.vanish(slice)
	default:
		p.t.Fatalf("%s is no command", verb)
	}
}

func (p *player) number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

func named(s string) schema.Address {
	if group, name, ok := strings.Cut(s, "/"); ok {
		return memberAddr(group, name)
	}
	return jobAddr(s)
}

func (p *player) job(name string, settings []string) schema.Job {
	addr := named(name)
	j := newJob(addr.Name, inGroup(addr.Group))
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		switch key {
		case "env":
			withEnv("V", value)(&j)
		case "tpu":
			onTPU(value)(&j)
		case "slices":
			j.Resources.Slices = p.number(value)
		case "pool":
			from(value)(&j)
		case "after":
			after(named(value))(&j)
		case "failures":
			j.Retries.Failure = p.number(value)
		case "preemptions":
			j.Retries.Preemption = p.number(value)
		case "exits":
			p.exits[j.Addr] = nil
			for exit := range strings.SplitSeq(value, ",") {
				runs, code, _ := strings.Cut(exit, "/")
				d, err := time.ParseDuration(runs)
				if err != nil {
					p.t.Fatal(err)
				}
				p.exits[j.Addr] = append(p.exits[j.Addr], program{runs: d, code: p.number(code)})
			}
		default:
			p.t.Fatalf("%s is no setting", key)
		}
	}
	return j
}

// tell writes down what a step did: what it found, what it did, and how jobs
// stand where that changed.
func (p *player) tell(at time.Time, plan *frayplan.Plan) {
	var lines []string
	for _, c := range plan.Changes {
		if c.Verb != frayplan.VerbNone {
			lines = append(lines, fmt.Sprintf("change  %s %s", c.Verb, c.Addr))
		}
	}
	if changes := strings.Join(lines, "\n"); changes == p.changes {
		lines = nil
	} else {
		p.changes = changes
	}
	for _, d := range plan.Drift {
		lines = append(lines, fmt.Sprintf("drift   %s; %s", d.Found, d.Then))
	}
	for _, a := range plan.Actions {
		what := a.Slice.Name
		if a.Assignment != nil && a.Assignment.Run != nil {
			what += fmt.Sprintf(": attempt %d of %s, generation %d", a.Assignment.Run.Attempt, a.Assignment.Run.Job, a.Assignment.Generation)
		} else if a.Assignment != nil {
			what += fmt.Sprintf(": nothing, generation %d", a.Assignment.Generation)
		}
		lines = append(lines, fmt.Sprintf("do      %s %s", a.Verb, what))
	}
	waits := map[schema.Address]string{}
	for _, w := range plan.Pending {
		waits[w.Addr] = strings.Join(w.Reasons, " | ")
	}
	stands := map[schema.Address]string{}
	for addr, j := range p.doc.Jobs {
		text := string(j.Status)
		if j.Ready {
			text += ", ready"
		}
		if text += fmt.Sprintf(", attempt %d", j.Attempt); j.Failures+j.Preemptions > 0 {
			text += fmt.Sprintf(", %d failures, %d preemptions", j.Failures, j.Preemptions)
		}
		if j.Reason != "" {
			text += ": " + cmp.Or(j.Reason, waits[addr])
		}
		stands[addr] = text
	}
	for _, addr := range slices.SortedFunc(maps.Keys(p.status), schema.Address.Compare) {
		if stands[addr] == "" {
			lines = append(lines, fmt.Sprintf("job     %s is no more", addr))
		}
	}
	for _, addr := range slices.SortedFunc(maps.Keys(stands), schema.Address.Compare) {
		if stands[addr] != p.status[addr] {
			lines = append(lines, fmt.Sprintf("job     %s %s", addr, stands[addr]))
		}
	}
	p.status = stands
	for _, line := range lines {
		fmt.Fprintf(&p.out, "%6.1fs %s\n", at.Sub(p.began).Seconds(), line)
	}
}
