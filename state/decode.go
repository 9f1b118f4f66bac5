package state

import (
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// readOptions are the options of reading a document. A document that is intact has
// no duplicate names; skipping the check saves time.
func readOptions(intact bool) jsonv2.Options {
	return jsonv2.JoinOptions(
		jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(intact),
		jsonv2.RejectUnknownMembers(true),
	)
}

// decode reads the members of a document.
func decode(document parts, options jsonv2.Options) (Document, error) {
	var d Document
	var jobs records[schema.Address, jobForm]
	var slices map[string]*Slice
	var desired desiredForm
	err := together(
		func() error {
			return jsonv2.Unmarshal(document.without(partDesired, partSlices, partJobs).object(), &d, options)
		},
		func() error { return document.decodePart(partDesired, &desired, options) },
		func() error {
			var found records[string, *Slice]
			err := document.decodePart(partSlices, &found, options)
			if err == nil {
				slices, err = mapOf(partSlices, found, func(s *Slice) *Slice { return s })
			}
			return err
		},
		func() error { return document.decodePart(partJobs, &jobs, options) },
	)
	if err == nil {
		d.Desired, d.Slices = desired.desired(), slices
		d.Jobs, err = mapOf(partJobs, jobs, jobForm.job)
	}
	if err == nil {
		d.takeSpecs()
		err = d.check()
	}
	return d, err
}

// job is the job of the form.
func (f jobForm) job() *Job {
	if f.Job != nil {
		f.Job.Spec = f.Spec
	}
	return f.Job
}

// takeSpecs makes the spec of a job the desired one where it was left out or is the
// same, so that they share their memory and are equal at a glance. The jobs are those that were just read.
func (d *Document) takeSpecs() {
	for i := range d.Desired.Jobs {
		spec := &d.Desired.Jobs[i]
		if j := d.Jobs[spec.Addr]; j != nil && (j.Spec == nil || reflect.DeepEqual(j.Spec, spec)) {
			j.Spec = spec
		}
	}
}

// desiredByAddress finds desired jobs. The values point into the list.
func desiredByAddress(d *Document) map[schema.Address]*schema.Job {
	byAddr := make(map[schema.Address]*schema.Job, len(d.Desired.Jobs))
	for i := range d.Desired.Jobs {
		byAddr[d.Desired.Jobs[i].Addr] = &d.Desired.Jobs[i]
	}
	return byAddr
}

// decodePart reads a member that may be missing.
func (p parts) decodePart(name string, v any, options jsonv2.Options) error {
	raw, ok := p[name]
	if !ok {
		return nil
	}
	if err := jsonv2.Unmarshal(raw, v, options); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
