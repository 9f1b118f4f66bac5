package incremental

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestDiffIsAFunction repeats Diffs with inventories in another order, and
// checks that what it is given stays as it was.
func TestDiffIsAFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		w.accept(drawConfiguration(t))
		for range rapid.IntRange(0, 15).Draw(t, "faults") {
			fault(t, w)
			w.step(700 * time.Millisecond)
		}
		obs := w.observe()
		before, seen := marshal(w.doc), fmt.Sprintf("%+v", obs.Inventories)
		want := ""
		for n := range 4 {
			p := reconcile.Diff(&w.doc.Desired, w.doc, obs, w.now)
			got := marshal([]any{p.Changes, p.Drift, p.Pending, p.Capacity, p.Actions, p.Next, p.Wake})
			if n > 0 && got != want {
				t.Fatalf("the same world gives another plan:\n%s\n%s", want, got)
			}
			want = got
			if n == 0 && (marshal(w.doc) != before || fmt.Sprintf("%+v", obs.Inventories) != seen) {
				t.Fatal("Diff changed what it was given")
			}
			for _, inv := range obs.Inventories {
				rand.New(rand.NewPCG(1, uint64(n))).Shuffle(len(inv.Slices), func(i, j int) {
					inv.Slices[i], inv.Slices[j] = inv.Slices[j], inv.Slices[i]
				})
			}
		}
	})
}

// leaves calls visit for every field of a struct, at any depth, with a setter
// that gives it another value.
func leaves(v reflect.Value, path string, visit func(path string, change func())) {
	text := reflect.TypeFor[schema.Text]()
	switch {
	case v.Type() == text:
		visit(path, func() { v.Set(reflect.ValueOf(schema.Plain("changed"))) })
	case v.Type() == reflect.TypeFor[schema.Address]():
		visit(path, func() { v.Set(reflect.ValueOf(jobAddr("changed"))) })
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			leaves(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		leaves(v.Elem(), path, visit)
		visit(path+" absent", func() { v.SetZero() })
	case v.Kind() == reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		leaves(v.Index(0), path+"[0]", visit)
		visit(path+" shorter", func() { v.SetLen(0) })
	case v.Kind() == reflect.Map:
		if v.Len() == 0 {
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("K"), reflect.Zero(v.Type().Elem()))
		}
		visit(path+" emptied", func() { v.Set(reflect.MakeMap(v.Type())) })
		visit(path+" value", func() {
			if v.Type().Elem() == text {
				v.SetMapIndex(reflect.ValueOf("K"), reflect.ValueOf(schema.Plain("changed")))
			} else {
				v.SetMapIndex(reflect.ValueOf("K"), reflect.ValueOf("changed"))
			}
		})
	case v.Kind() == reflect.String:
		visit(path, func() { v.SetString("changed") })
	case v.Kind() == reflect.Bool:
		visit(path, func() { v.SetBool(!v.Bool()) })
	case v.CanInt():
		visit(path, func() { v.SetInt(v.Int() + 77777777777) })
	case v.CanFloat():
		visit(path, func() { v.SetFloat(v.Float() + 1) })
	default:
		panic("no way to change " + path)
	}
}

// TestEveryFieldOfAJobCounts changes each field of a job in turn: plan must see
// it, show it, and decide what it means.
func TestEveryFieldOfAJobCounts(t *testing.T) {
	full := func() *schema.Job {
		j := newJob("a", withEnv("K", "v"))
		leaves(reflect.ValueOf(&j).Elem(), "", func(string, func()) {}) // fills in what is absent
		return &j
	}
	var paths []string
	leaves(reflect.ValueOf(full()).Elem(), "Job", func(path string, _ func()) { paths = append(paths, path) })
	if len(paths) < 50 {
		t.Fatalf("only %d fields found", len(paths))
	}
	for _, target := range paths {
		cur, want := full(), full()
		leaves(reflect.ValueOf(want).Elem(), "Job", func(path string, change func()) {
			if path == target {
				change()
			}
		})
		if target == "Job.Addr" {
			continue // another job
		}
		if strings.HasPrefix(target, "Job.Lifecycle.") { // no part of what the job is
			lifecycleCounts(t, target, cur, want)
			continue
		}
		if strings.HasPrefix(target, "Job.Sensitive") { // nor is this
			sensitiveCounts(t, target, cur, want)
			continue
		}
		if schema.EqualJobs(cur, want) || !schema.EqualJobs(want, want) {
			t.Errorf("%s: equalJobs does not look at it", target)
			continue
		}
		digest, err := schema.DigestOf(cur)
		if err != nil {
			t.Fatal(err)
		}
		if c := lifecycle.ChangeOf(want, &state.Job{Spec: cur, Digest: digest, Attempt: 1}); c.Verb == plan.VerbNone {
			t.Errorf("%s: its change has no verb", target)
		}
	}
}

// lifecycleCounts checks that another lifecycle is noticed, and changes nothing but
// by its trigger.
func lifecycleCounts(t *testing.T, field string, cur, want *schema.Job) {
	t.Helper()
	if change.EqualLifecycles(&cur.Lifecycle, &want.Lifecycle) || !change.EqualLifecycles(&want.Lifecycle, &want.Lifecycle) {
		t.Errorf("%s: equalLifecycles does not look at it", field)
	}
	if !schema.EqualJobs(cur, want) {
		t.Errorf("%s: equalJobs takes it for a part of the job", field)
	}
	verb := plan.VerbNone
	if field == "Job.Lifecycle.Trigger" {
		cur.Lifecycle.Trigger, verb = "was", plan.VerbReplace
	}
	digest, err := schema.DigestOf(cur)
	if err != nil {
		t.Fatal(err)
	}
	c := lifecycle.ChangeOf(want, &state.Job{Spec: cur, Digest: digest, Attempt: 1})
	changed := slices.ContainsFunc(c.Attrs, func(a *plan.AttrChange) bool { return a.Verb != plan.VerbNone })
	if c.Verb != verb || changed {
		t.Errorf("%s: its change has verb %s and attributes %v, want %s and none changed", field, c.Verb, c.Attrs, verb)
	}
}

// sensitiveCounts checks that other values that went into the same texts are
// recorded, change nothing else, and leave the digest as it was.
func sensitiveCounts(t *testing.T, field string, cur, want *schema.Job) {
	t.Helper()
	before, err := schema.DigestOf(cur)
	if err != nil {
		t.Fatal(err)
	}
	after, err := schema.DigestOf(want)
	if err != nil {
		t.Fatal(err)
	}
	record := &state.Job{Spec: cur, Digest: before, Attempt: 1}
	if c := lifecycle.ChangeOf(want, record); c.Verb != plan.VerbNone || len(c.Attrs) != 0 || before != after || !schema.EqualJobs(cur, want) {
		t.Errorf("%s: its change has verb %s and attributes %v, digests %s and %s: want no change", field, c.Verb, c.Attrs, before, after)
	}
	kept := change.Beside(want, record)
	if !slices.Equal(kept.Spec.Sensitive, want.Sensitive) || kept.Digest != before {
		t.Errorf("%s: recorded %v, want %v under the same digest", field, kept.Spec.Sensitive, want.Sensitive)
	}
	if change.Beside(want, kept) != kept {
		t.Errorf("%s: it is recorded again and again", field)
	}
	want.Priority++
	if change.Beside(want, record) != record {
		t.Errorf("%s: a job that becomes another one has the values of that one before it is", field)
	}
}

func TestWhatAChangeDoes(t *testing.T) {
	for name, c := range map[string]struct {
		change jobOption
		want   plan.Verb
	}{
		"command":  {func(j *schema.Job) { j.Command = []schema.Text{schema.Plain("x")} }, plan.VerbRestart},
		"env":      {withEnv("X", "y"), plan.VerbRestart},
		"retries":  {failures(9), plan.VerbRestart},
		"health":   {healthy, plan.VerbRestart},
		"ports":    {func(j *schema.Job) { j.Resources.Ports = []schema.Port{{Name: "http"}} }, plan.VerbRestart},
		"tpu":      {onTPU("v5litepod-8"), plan.VerbReplace},
		"slices":   {onSlices(2), plan.VerbReplace},
		"zones":    {func(j *schema.Job) { j.Resources.Zones = []string{"z"} }, plan.VerbUpdate},
		"machine":  {func(j *schema.Job) { j.Resources.MachineType = "n2" }, plan.VerbReplace},
		"labels":   {func(j *schema.Job) { j.Labels = map[string]string{"a": "b"} }, plan.VerbUpdate},
		"priority": {withPriority("", 3), plan.VerbUpdate},
		"depends":  {after(jobAddr("z")), plan.VerbUpdate},
		"nothing":  {func(*schema.Job) {}, plan.VerbNone},
	} {
		w := up(t, configuration(newJob("a"), newJob("z", healthy, withEnv("Z", "z"))))
		a := jobAddr("a")
		slice := w.slices[w.sliceOf(a, 0)]
		w.accept(configuration(newJob("a", c.change), newJob("z", healthy, withEnv("Z", "z"))))
		got := plan.VerbNone
		for _, change := range w.step(time.Second).Changes {
			if change.Addr == a {
				got = change.Verb
			}
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		w.settle(time.Minute)
		attempt, same := w.job(a).Attempt, w.slices[w.sliceOf(a, 0)] == slice
		if wantAttempt := map[plan.Verb]int{plan.VerbRestart: 2, plan.VerbReplace: 2}[c.want]; attempt != max(1, wantAttempt) || same != (c.want != plan.VerbReplace) {
			t.Errorf("%s: attempt %d, same slice %t after a %s", name, attempt, same, c.want)
		}
	}
}

func TestChangesOfResources(t *testing.T) {
	w := newWorld(t)
	ns := schema.Namespace{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}}
	w.accept(schema.Desired{Namespaces: []schema.Namespace{ns}})
	w.settle(time.Minute)
	ns.MaxChips = 64
	w.accept(schema.Desired{Namespaces: []schema.Namespace{ns}})
	p := w.step(time.Second)
	if c := p.Changes[0]; c.Verb != plan.VerbUpdate || len(c.Attrs) != 1 || c.Attrs[0].Path != "max_chips" || string(c.Attrs[0].After) != "64" {
		t.Errorf("got %+v, want an update of max_chips to 64", c)
	}
	w.settle(time.Minute)
	w.accept(schema.Desired{})
	if p := w.step(time.Second); p.Changes[0].Verb != plan.VerbDelete {
		t.Errorf("got %+v, want a delete", p.Changes[0])
	}
	if p := w.settle(time.Minute); len(w.doc.Resources) > 0 || len(p.Changes) > 0 {
		t.Errorf("left: %+v", w.doc.Resources)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	secret := func(value string) schema.Job {
		sealed, err := schema.Secret(value).Seal(reverse{})
		if err != nil {
			t.Fatal(err)
		}
		return newJob("a", func(j *schema.Job) {
			j.Environment.Env = map[string]schema.Text{"TOKEN": sealed}
			j.Command = append(j.Command, sealed)
		})
	}
	w := up(t, configuration(secret("hunter2")))
	w.accept(configuration(secret("correct horse")))
	p := reconcile.Diff(&w.doc.Desired, w.doc, w.observe(), w.now)
	if c := p.Changes[0]; c.Verb != plan.VerbRestart {
		t.Errorf("a changed secret: got %s, want restart", c.Verb)
	}
	shown := marshal(p.Changes)
	for _, word := range []string{"hunter2", "2retnuh", "horse", "esroh"} {
		if strings.Contains(shown, word) {
			t.Errorf("the plan shows %q: %s", word, shown)
		}
	}
}

// reverse is a Sealer for tests.
type reverse struct{}

func (reverse) Seal(s string) (string, error) {
	b := []byte(s)
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return string(b), nil
}
func (r reverse) Open(s string) (string, error) { return r.Seal(s) }

func TestUnknownValuesAreWaitedFor(t *testing.T) {
	b := jobAddr("b")
	with := func(value schema.Text) schema.Desired {
		return configuration(newJob("a", asService), newJob("b", using(schema.Address{Kind: schema.KindActorService, Name: "a"}), func(j *schema.Job) {
			j.Environment.Env = map[string]schema.Text{"ADDRESS": value}
		}))
	}
	w := newWorld(t)
	w.accept(with(schema.UnknownText()))
	w.run(20 * time.Second)
	w.wantJob(b, schema.JobPending, 0, 0, 0)
	if got := w.job(b).Reason; got != "some of its values are not known yet" {
		t.Errorf("reason: got %q", got)
	}
	w.accept(with(schema.Plain("127.0.0.1:80")))
	w.settle(time.Minute)
	w.wantJob(b, schema.JobRunning, 1, 0, 0)
	w.accept(with(schema.UnknownText())) // it goes on until it is known what changes
	w.run(10 * time.Second)
	w.wantJob(b, schema.JobRunning, 1, 0, 0)
	w.accept(with(schema.Plain("127.0.0.1:81")))
	w.settle(time.Minute)
	w.wantJob(b, schema.JobRunning, 2, 0, 0)
}

func TestCapacityNamesProvidersInUse(t *testing.T) {
	w := up(t, withPools(configuration(newJob("a", onTPU("v5litepod-16")), newJob("b")), newPool("p", "v5litepod-4", 2)))
	p := w.step(time.Second)
	want := plan.Amount{Slices: 4, Hosts: 7, Chips: 24, CPU: 1}
	if len(p.Capacity) != 1 || p.Capacity[0].Before != want || p.Capacity[0].After != want || p.Capacity[0].Limit != (plan.Amount{}) {
		t.Errorf("got %+v, want %+v before and after", p.Capacity, want)
	}
}
