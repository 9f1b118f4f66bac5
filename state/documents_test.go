package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// same compares documents: an empty map is as good as none, as in JSON.
func same() cmp.Options {
	return cmp.Options{
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b schema.Address) bool { return a == b }),
		cmp.Comparer(func(a, b schema.Text) bool { return a == b }),
	}
}

// sample has something in every part.
func sample(t testing.TB) state.Document {
	t.Helper()
	key, err := state.NewKey(make([]byte, state.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	token, err := schema.Secret("hunter2").Seal(key)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 6, 30, 0, 123456789, time.UTC)
	code := 0
	job := schema.Job{
		Addr:      schema.Address{Kind: schema.KindJob, Group: "math", Name: "trainer", Key: schema.StringKey("a/b \"c\"")},
		Namespace: "rl",
		Command:   []schema.Text{schema.Plain("train"), schema.Plain("--token"), token, schema.UnknownText()},
		Resources: schema.Resources{
			Provider: schema.ProviderLocal, TPU: "v5litepod-16", Slices: 1, Ports: []schema.Port{{Name: "http"}},
		},
		Environment: schema.Environment{
			Project: "/src", UV: &schema.UV{Extras: []string{"tpu"}}, Env: map[string]schema.Text{"TOKEN": token, "A": schema.Plain("<b>&")},
		},
		Retries:     schema.Retries{Preemption: schema.Unlimited},
		HealthCheck: &schema.Health{HTTP: "/healthz", Port: "http", Interval: schema.Duration(10 * time.Second), Threshold: 3},
		StopGrace:   schema.Duration(30 * time.Second),
	}
	namespace := schema.Namespace{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}, MaxChips: 256}
	digest, err := schema.DigestOf(job)
	if err != nil {
		t.Fatal(err)
	}
	return state.Document{
		FormatVersion: state.FormatVersion, FrayVersion: "0.1.0", Lineage: "abcdefghijklmnopqrstuvwxyz",
		Serial: 41, Epoch: 7, Nonce: "N", Revision: 3,
		Desired: schema.Desired{Namespaces: []schema.Namespace{namespace}, Jobs: []schema.Job{job}},
		Resources: map[schema.Address]state.Resource{
			namespace.Addr: {Digest: "v1:00", Namespace: &namespace},
		},
		Slices: map[string]*state.Slice{"s-1": {
			Spec:         schema.SliceSpec{Name: "s-1", Stack: "abcdefghijkl", Owner: job.Addr, Provider: schema.ProviderLocal, TPU: "v5litepod-16", Hosts: 4},
			PendingSince: at, Listed: true, Failed: schema.ErrorCapacity, Error: "no room", Tries: 2, RetryAt: at.Add(time.Minute),
		}},
		Jobs: map[schema.Address]*state.Job{job.Addr: {
			ID: "j-1", Spec: &job, Digest: digest, Status: schema.JobRunning, Ready: true, Slices: []string{"s-1"}, Attempt: 1,
			Attempts: []state.Attempt{{
				Number: 1, Generation: 5, Why: "first", StartedAt: at, Slices: []string{"s-1"},
				Tasks: []state.Task{{
					Slice: "s-1", Address: "127.0.0.1", State: schema.TaskSucceeded, ExitCode: &code,
					Ports: map[string]int{"http": 8080}, Tail: []string{"one", "two"}, Started: true,
				}},
			}},
		}},
		Outputs: map[string]schema.Output{
			"plain":  {Value: json.RawMessage(`{"a":[1,2,{"b":"<c>"}],"d":null}`), Description: "what it is"},
			"secret": {Secret: token, Sensitive: true},
			"later":  {Unknown: true},
		},
	}
}

// cleared is the sample without jobs and slices, of which it returns one each.
func cleared(t testing.TB) (d state.Document, job state.Job, slice state.Slice) {
	t.Helper()
	d = sample(t)
	job, slice = *d.Jobs[d.Desired.Jobs[0].Addr], *d.Slices["s-1"]
	d.Jobs, d.Slices, d.Desired.Jobs = map[schema.Address]*state.Job{}, map[string]*state.Slice{}, nil
	return d, job, slice
}

// large is a document of n jobs, instances of one for_each, with one slice and
// one attempt of one task each.
func large(t testing.TB, n int) state.Document {
	t.Helper()
	d, job, slice := cleared(t)
	for i := range n {
		spec := *job.Spec
		spec.Addr.Key = schema.StringKey(fmt.Sprintf("part-%05d", i))
		spec.Command = []schema.Text{schema.Plain("train"), schema.Plain(fmt.Sprintf("--part=%d", i))}
		add(t, &d, spec, job, slice)
	}
	return d
}

// chain is a document of n jobs, each in a block of its own, that depend on
// the one before.
func chain(t testing.TB, n int) state.Document {
	t.Helper()
	d, job, slice := cleared(t)
	for i := range n {
		spec := *job.Spec
		spec.Addr = schema.Address{Kind: schema.KindJob, Name: fmt.Sprintf("link-%05d", i)}
		if i > 0 {
			spec.DependsOn = []schema.Address{d.Desired.Jobs[i-1].Addr}
		}
		add(t, &d, spec, job, slice)
	}
	return d
}

// add adds a job that shares nothing with others, as after planning anew.
func add(t testing.TB, d *state.Document, spec schema.Job, job state.Job, slice state.Slice) {
	t.Helper()
	d.Desired.Jobs = append(d.Desired.Jobs, deepCopy(t, spec))
	own := deepCopy(t, spec)
	digest, err := schema.DigestOf(spec)
	if err != nil {
		t.Fatal(err)
	}
	slice.Spec.Name = fmt.Sprintf("job-%s-0", digest.Short())
	slice.Spec.Owner = spec.Addr
	job.ID, job.Spec, job.Digest = "j-"+string(digest[3:29]), &own, digest
	job.Slices = []string{slice.Spec.Name}
	attempt := job.Attempts[0]
	attempt.Slices = []string{slice.Spec.Name}
	attempt.Tasks = []state.Task{attempt.Tasks[0]}
	attempt.Tasks[0].Slice, attempt.Tasks[0].Tail = slice.Spec.Name, nil
	job.Attempts = []state.Attempt{attempt}
	d.Jobs[spec.Addr], d.Slices[slice.Spec.Name] = &job, &slice
}

func deepCopy(t testing.TB, spec schema.Job) schema.Job {
	t.Helper()
	data, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	var c schema.Job
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// filled is a document in which no field of any type is zero.
func filled(t testing.TB) state.Document {
	t.Helper()
	var d state.Document
	f := filler{}
	f.fill(t, reflect.ValueOf(&d).Elem())
	d.FormatVersion = state.FormatVersion
	specs := []func(*state.Resource){
		func(r *state.Resource) { r.Reservation, r.Group, r.Notification = nil, nil, nil },
		func(r *state.Resource) { r.Namespace, r.Group, r.Notification = nil, nil, nil },
		func(r *state.Resource) { r.Namespace, r.Reservation, r.Notification = nil, nil, nil },
		func(r *state.Resource) { r.Namespace, r.Reservation, r.Group = nil, nil, nil },
	}
	for i, addr := range slices.SortedFunc(maps.Keys(d.Resources), schema.Address.Compare) {
		r := d.Resources[addr]
		specs[i](&r)
		d.Resources[addr] = r
	}
	for name, s := range d.Slices {
		s.Spec.Name = name
	}
	return d
}

// filler puts a value into all fields that it is given, another one each time.
type filler struct{ n int }

func (f *filler) fill(t testing.TB, v reflect.Value) {
	t.Helper()
	f.n++
	switch p := v.Addr().Interface().(type) {
	case *schema.Address:
		*p = schema.Address{Kind: schema.KindJob, Module: "module.m[0]", Group: "g", Name: fmt.Sprintf("j%d", f.n), Key: schema.IntKey(f.n)}
		return
	case *schema.Text:
		*p = schema.Plain(fmt.Sprintf("text %d", f.n))
		return
	case *time.Time:
		*p = time.Date(2026, 11, 21, 6, 30, f.n%60, f.n, time.UTC)
		return
	case *json.RawMessage:
		*p = json.RawMessage(fmt.Sprintf(`{"n":[%d,null,1.0,"\u003c"]}`, f.n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("string %d", f.n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Uint64:
		v.SetUint(uint64(f.n))
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.25)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
		for i := range 3 {
			f.fill(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 3 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(t, key)
			f.fill(t, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			f.fill(t, field)
		}
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

// roundTrip encodes and decodes a document, and fails if anything changed.
func roundTrip(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, want state.Document) (state.Document, []byte) {
	t.Helper()
	data, err := state.Encode(want)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	got, err := state.Decode(data)
	if err != nil {
		t.Fatalf("decode: %v\n%s", err, data)
	}
	mustBeSame(t, want, got)
	return got, data
}

// mustBeSame compares documents and the digests of their specs.
func mustBeSame(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, want, got state.Document) {
	t.Helper()
	if diff := cmp.Diff(want, got, same()); diff != "" {
		t.Fatalf("the document changed (-want +got):\n%s", diff)
	}
	digests := func(d state.Document) (out []schema.Digest) {
		specs := []any{d.Desired}
		for _, addr := range slices.SortedFunc(maps.Keys(d.Jobs), schema.Address.Compare) {
			specs = append(specs, d.Jobs[addr].Spec)
		}
		for _, spec := range specs {
			digest, err := schema.DigestOf(spec)
			if err != nil {
				t.Fatalf("digest: %v", err)
			}
			out = append(out, digest)
		}
		return out
	}
	if want, got := digests(want), digests(got); !slices.Equal(want, got) {
		t.Fatalf("digests of specs changed: got %v, want %v", got, want)
	}
}

func compact(t testing.TB, value json.RawMessage) json.RawMessage {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
