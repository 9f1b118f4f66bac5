package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestEveryFieldIsWritten holds for fields that are yet to come: none may be
// hidden by the form that the file has.
func TestEveryFieldIsWritten(t *testing.T) {
	got, _ := roundTrip(t, filled(t))
	if path := zeroField(reflect.ValueOf(got), "document"); path != "" {
		t.Errorf("%s is empty", path)
	}
}

// zeroField returns a field that is zero, but for those of a resource, which has one spec.
func zeroField(v reflect.Value, path string) string {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return zeroField(v.Elem(), path)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() || v.Type() == reflect.TypeFor[state.Resource]() {
				continue
			}
			if found := zeroField(v.Field(i), path+"."+f.Name); found != "" {
				return found
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if found := zeroField(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); found != "" {
				return found
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if found := zeroField(entries.Value(), fmt.Sprintf("%s[%v]", path, entries.Key())); found != "" {
				return found
			}
		}
	}
	if v.IsZero() && v.Type() != reflect.TypeFor[schema.Key]() {
		return path
	}
	return ""
}

// TestInstancesMayDifferInAnything makes four instances for each field of a
// spec, of which two have the field and two have not.
func TestInstancesMayDifferInAnything(t *testing.T) {
	var common schema.Job
	(&filler{}).fill(t, reflect.ValueOf(&common).Elem())
	for path, zero := range leaves(reflect.TypeFor[schema.Job](), "job") {
		t.Run(path, func(t *testing.T) {
			d := state.Document{FormatVersion: state.FormatVersion, Lineage: "l", Jobs: map[schema.Address]*state.Job{}}
			for i := range 8 {
				full := deepCopy(t, common)
				if i%2 == i/4 { // both are first once
					zero(reflect.ValueOf(&full).Elem())
				}
				full.Addr = schema.Address{Kind: schema.KindJob, Name: fmt.Sprintf("j%d", i/4), Key: schema.IntKey(i)}
				if i%4 < 2 {
					d.Desired.Jobs = append(d.Desired.Jobs, full)
				} else {
					d.Jobs[full.Addr] = &state.Job{Spec: &full}
				}
			}
			if _, data := roundTrip(t, d); bytes.Count(data, []byte(`"like": `)) < 8 {
				t.Errorf("want eight instances that are like a common spec, got\n%s", data)
			}
		})
	}
	for path, zero := range leaves(reflect.TypeFor[schema.SliceSpec](), "slice") {
		t.Run(path, func(t *testing.T) {
			d := state.Document{FormatVersion: state.FormatVersion, Lineage: "l", Slices: map[string]*state.Slice{}}
			for i := range 4 {
				var s state.Slice
				(&filler{}).fill(t, reflect.ValueOf(&s).Elem())
				if i%2 == i/2 {
					zero(reflect.ValueOf(&s.Spec).Elem())
				}
				s.Spec.Name = fmt.Sprintf("s%d", i)
				d.Slices[s.Spec.Name] = &s
			}
			if _, data := roundTrip(t, d); bytes.Count(data, []byte(`"like": `)) < 4 {
				t.Errorf("want four slices that are like a common spec, got\n%s", data)
			}
		})
	}
}

// leaves returns for every field within a struct what makes it zero.
func leaves(typ reflect.Type, path string) map[string]func(reflect.Value) {
	out := map[string]func(reflect.Value){}
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, get := path+"."+f.Name, func(v reflect.Value) reflect.Value { return v.Field(i) }
		out[name] = func(v reflect.Value) { get(v).SetZero() }
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
			get = func(v reflect.Value) reflect.Value { return v.Field(i).Elem() }
		}
		if inner.Kind() != reflect.Struct || !inner.Field(0).IsExported() || inner == reflect.TypeFor[schema.Address]() {
			continue
		}
		for name, zero := range leaves(inner, name) {
			out[name] = func(v reflect.Value) { zero(get(v)) }
		}
	}
	return out
}

// TestDecodeSharesMemory: a job's spec is the desired one where it is equal,
// and instances share what they have in common.
func TestDecodeSharesMemory(t *testing.T) {
	d := large(t, 10)
	changed := *d.Jobs[d.Desired.Jobs[3].Addr].Spec
	changed.Priority++
	d.Jobs[changed.Addr].Spec = &changed
	d.Jobs[d.Desired.Jobs[4].Addr].Spec.Labels = map[string]string{} // is written as nil is
	first, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	first = bytes.Replace(first, []byte(`"format_version":3`), []byte(`"format_version":1`), 1)
	second, err := state.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"version 1": first, "this version": second} {
		got, err := state.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.Desired.Jobs {
			desired := &got.Desired.Jobs[i]
			if shared := got.Jobs[desired.Addr].Spec == desired; shared != (i != 3) {
				t.Errorf("%s: %s: got shared %v, want %v", name, desired.Addr, shared, i != 3)
			}
		}
	}
	got, err := state.Decode(second)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := got.Desired.Jobs[0], got.Desired.Jobs[9]; a.HealthCheck == nil || a.HealthCheck != b.HealthCheck {
		t.Error("instances have a health check each, want one")
	}
}

// TestDecodeWhatAnotherToolWrote: members may come in another order.
func TestDecodeWhatAnotherToolWrote(t *testing.T) {
	want := large(t, 10)
	for _, i := range []int{2, 5} {
		changed := *want.Jobs[want.Desired.Jobs[i].Addr].Spec
		changed.Environment.Env = map[string]schema.Text{"A": schema.Plain("b"), "zz": schema.UnknownText()}
		changed.Command = nil
		want.Jobs[changed.Addr].Spec = &changed
	}
	_, data := roundTrip(t, want)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var generic map[string]any
	if err := decoder.Decode(&generic); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(generic); err != nil {
		t.Fatal(err)
	}
	sorted := b.Bytes()
	if !regexp.MustCompile(`"command": \[[^]]*\],\s*"like"`).Match(sorted) {
		t.Fatal("like comes first, which proves nothing")
	}
	got, intact, err := state.DecodeEdited(sorted)
	if err != nil || intact {
		t.Fatal(err)
	}
	mustBeSame(t, want, got)
}

// TestEncodeGrowsByWhatDiffers: what instances have in common is written once.
func TestEncodeGrowsByWhatDiffers(t *testing.T) {
	for _, test := range []struct {
		name  string
		make  func(testing.TB, int) state.Document
		bytes int // for each job, at most
	}{
		{"for_each", large, 900},
		{"chain", chain, 900},
	} {
		size := func(n int) int {
			_, data := roundTrip(t, test.make(t, n))
			return len(compact(t, data))
		}
		few, more, many := size(100), size(200), size(300)
		if got := (more - few) / 100; got > test.bytes {
			t.Errorf("%s: got %d bytes for each job, want at most %d", test.name, got, test.bytes)
		}
		if first, second := more-few, many-more; second > first+first/100 {
			t.Errorf("%s: 100 more jobs take %d bytes, the next 100 %d, want no growth", test.name, first, second)
		}
	}
}
