package state

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/checksum"
)

// Names of the long parts of a document, which are written and read concurrently.
const (
	partDesired = "desired"
	partSlices  = "slices"
	partJobs    = "jobs"
)

// headForm is a document without its long parts.
type headForm struct {
	*Document

	Desired nothing `json:"desired,omitzero"`
	Slices  nothing `json:"slices,omitzero"`
	Jobs    nothing `json:"jobs,omitzero"`
}

type nothing struct{}

// jobForm is a job that has a spec only if it is not the desired one of its address.
// That, and nothing else, is written otherwise than the types say.
type jobForm struct {
	*Job

	Spec *schema.Job `json:"spec,omitempty"`
}

func writeOptions() jsonv2.Options {
	return jsonv2.JoinOptions(
		jsonv1.OmitEmptyWithLegacySemantics(true),
		jsonv2.FormatNilSliceAsNull(true),
		jsonv2.FormatNilMapAsNull(true),
		jsonv2.Deterministic(true),
		jsontext.PreserveRawStrings(true),
		// Output of programs need not be UTF-8; the encoder replaces invalid bytes.
		jsontext.AllowInvalidUTF8(true),
		// Saves time: the names are those of structs and maps.
		jsontext.AllowDuplicateNames(true),
	)
}

// encode writes a document in one line.
func encode(d *Document) ([]byte, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	head, err := jsonv2.Marshal(headForm{Document: d}, writeOptions())
	if err != nil {
		return nil, err
	}
	var desired, slices, jobs []byte
	err = together(
		func() (err error) {
			desired, err = encodePart(partDesired, 1+len(d.Desired.Jobs), d.Desired)
			return err
		},
		func() (err error) { slices, err = encodePart(partSlices, len(d.Slices), d.Slices); return err },
		func() (err error) { jobs, err = encodePart(partJobs, len(d.Jobs), jobForms(d)); return err },
	)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(head)+len(desired)+len(slices)+len(jobs)+checksum.MaxSize)
	out = append(out, bytes.TrimSuffix(head, []byte("}"))...)
	return append(append(append(append(out, desired...), slices...), jobs...), '}'), nil
}

// usualSize is about how many bytes an element of a part has in JSON.
const usualSize = 1 << 10

// encodePart returns a member that follows others, nothing if it has no elements.
func encodePart(name string, elements int, value any) ([]byte, error) {
	if elements == 0 {
		return nil, nil
	}
	var out bytes.Buffer
	out.Grow(elements * usualSize)
	out.WriteString(`,"` + name + `":`)
	if err := jsonv2.MarshalWrite(&out, value, writeOptions()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.Bytes(), nil
}

func jobForms(d *Document) map[schema.Address]jobForm {
	forms := make(map[schema.Address]jobForm, len(d.Jobs))
	for addr, j := range d.Jobs {
		forms[addr] = jobForm{Job: j, Spec: j.Spec}
	}
	for addr, desired := range desiredByAddress(d) {
		if form, ok := forms[addr]; ok && (form.Spec == desired || reflect.DeepEqual(form.Spec, desired)) {
			forms[addr] = jobForm{Job: form.Job}
		}
	}
	return forms
}

// together calls all of do concurrently and returns the first of their errors, in
// the order of do.
func together(do ...func() error) error {
	errs := make([]error, len(do))
	var others sync.WaitGroup
	for i := range do {
		others.Go(func() { errs[i] = do[i]() })
	}
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
