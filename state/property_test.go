package state_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// TestDecodeIsTheInverseOfEncode holds for documents of any content: values
// that are missing, empty and nil, and specs that are alike in some parts.
func TestDecodeIsTheInverseOfEncode(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { roundTrip(t, drawDocument(t)) })
}

func drawDocument(t *rapid.T) state.Document {
	var d state.Document
	draw(t, reflect.ValueOf(&d).Elem())
	d.FormatVersion, d.Lineage = state.FormatVersion, "l"+d.Lineage
	if d.Journal != nil {
		d.Journal.ID, d.Journal.Slots = "j"+d.Journal.ID, max(d.Journal.Slots, 1)
	}
	for addr, r := range d.Resources {
		d.Resources[addr] = state.Resource{Digest: r.Digest, Namespace: &schema.Namespace{Addr: addr}}
	}
	for name, s := range d.Slices {
		if s == nil {
			d.Slices[name] = &state.Slice{}
		}
		d.Slices[name].Spec.Name = name
	}
	for addr, j := range d.Jobs {
		if j == nil || j.Spec == nil || addr.IsZero() {
			delete(d.Jobs, addr)
		}
	}
	d.Desired.Jobs = nil
	drawInstances(t, &d)
	return d
}

// drawInstances adds jobs, desired or not, that differ in some fields from one
// or the other of two, and slices that do so too.
func drawInstances(t *rapid.T, d *state.Document) {
	if d.Jobs == nil {
		d.Jobs = map[schema.Address]*state.Job{}
	}
	if d.Slices == nil {
		d.Slices = map[string]*state.Slice{}
	}
	var specs [2]schema.Job
	var capacity [2]schema.SliceSpec
	draw(t, reflect.ValueOf(&specs).Elem())
	draw(t, reflect.ValueOf(&capacity).Elem())
	for i := range rapid.IntRange(0, 12).Draw(t, "instances") {
		spec := variant(t, specs[rapid.IntRange(0, 1).Draw(t, "spec")])
		spec.Addr = schema.Address{Kind: schema.KindJob, Name: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "block"), Key: schema.IntKey(i)}
		desired := rapid.Bool().Draw(t, "desired")
		if desired {
			again := rapid.SliceOfN(rapid.Just(spec), 1, 2).Draw(t, "more than once")
			d.Desired.Jobs = append(d.Desired.Jobs, again...)
		}
		j := &state.Job{Spec: &spec}
		draw(t, reflect.ValueOf(&j.Slices).Elem())
		draw(t, reflect.ValueOf(&j.Attempts).Elem())
		if len(j.Attempts) > 0 && rapid.Bool().Draw(t, "same slices") {
			j.Attempts[0].Slices = j.Slices
		}
		if desired && rapid.Bool().Draw(t, "changed") {
			old := variant(t, spec)
			old.Addr, j.Spec = spec.Addr, &old
		}
		d.Jobs[spec.Addr] = j

		s := &state.Slice{Spec: variant(t, capacity[rapid.IntRange(0, 1).Draw(t, "capacity")])}
		s.Spec.Name = fmt.Sprintf("instance-%d", i)
		d.Slices[s.Spec.Name] = s
	}
}

// variant draws some fields of v anew.
func variant[T any](t *rapid.T, v T) T {
	fields := reflect.ValueOf(&v).Elem()
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		f := fields.Field(rapid.IntRange(0, fields.NumField()-1).Draw(t, "field"))
		f.SetZero()
		draw(t, f)
	}
	return v
}

// draw draws a value for everything within v, which must be addressable.
func draw(t *rapid.T, v reflect.Value) {
	few := rapid.IntRange(0, 2)
	switch p := v.Addr().Interface().(type) {
	case *schema.Address:
		*p = drawAddress(t)
		return
	case *schema.Text:
		*p = drawText(t)
		return
	case *time.Time:
		*p = time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "s"), rapid.Int64Range(0, 999999999).Draw(t, "ns")).UTC()
		return
	case *json.RawMessage:
		*p = rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage("null"), json.RawMessage(`{"a":1,"a":"\u003c<\\"}`), json.RawMessage("1e400")}).Draw(t, "json")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.Just(""), rapid.SampledFrom([]string{"a", "b", "\x00\"\\\u2028<"}), rapid.String()).Draw(t, "string"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.Just(0.0), rapid.Float64()).Draw(t, "float"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem())
		}
	case reflect.Slice:
		if n := few.Draw(t, "length"); n > 0 || rapid.Bool().Draw(t, "empty") {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				draw(t, v.Index(i))
			}
		}
	case reflect.Map:
		if n := few.Draw(t, "size"); n > 0 || rapid.Bool().Draw(t, "empty") {
			v.Set(reflect.MakeMap(v.Type()))
			for range n {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				draw(t, key)
				draw(t, value)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			draw(t, v.Index(i))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			draw(t, field)
		}
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

func drawAddress(t *rapid.T) schema.Address {
	a := schema.Address{
		Kind: rapid.SampledFrom(schema.Kinds()).Draw(t, "kind"),
		Name: rapid.StringMatching(`[a-z_][a-z0-9_-]{0,4}`).Draw(t, "name"),
	}
	a.Module = rapid.SampledFrom([]string{"", "module.m", `module.m["a.b]"].module.n[2]`}).Draw(t, "module")
	if a.Kind == schema.KindJob && rapid.Bool().Draw(t, "grouped") {
		a.Group = "g"
	}
	switch rapid.IntRange(0, 2).Draw(t, "key") {
	case 1:
		a.Key = schema.IntKey(rapid.IntRange(0, 20).Draw(t, "index"))
	case 2:
		a.Key = schema.StringKey(rapid.OneOf(rapid.String(), rapid.Just("\xff")).Draw(t, "name of instance"))
	}
	return a
}

func drawText(t *rapid.T) schema.Text {
	switch rapid.IntRange(0, 3).Draw(t, "form") {
	case 0:
		return schema.UnknownText()
	case 1:
		sealed, err := schema.Secret(rapid.String().Draw(t, "secret")).Seal(plainSealer{})
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	default:
		return schema.Plain(rapid.SampledFrom([]string{"", "a", "<&>", "\u2028"}).Draw(t, "text"))
	}
}

// plainSealer seals nothing.
type plainSealer struct{}

var _ schema.Sealer = plainSealer{}

func (plainSealer) Seal(secret string) (string, error) { return "sealed " + secret, nil }
func (plainSealer) Open(sealed string) (string, error) { return sealed, nil }
