package state_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
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

// TestDecodeSharesMemory: a job's spec is the desired one where it is equal.
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
	first = bytes.Replace(first, []byte(`"format_version":4`), []byte(`"format_version":1`), 1)
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
	if bytes.Index(sorted, []byte(`"checksum"`)) > bytes.Index(sorted, []byte(`"desired"`)) {
		t.Fatal("the checksum comes last, which proves nothing")
	}
	got, intact, err := state.DecodeEdited(sorted)
	if err != nil || intact {
		t.Fatal(err)
	}
	mustBeSame(t, want, got)
}
