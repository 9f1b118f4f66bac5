package state

import (
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// readOptions are those of reading a document. One that is what its checksum is
// of has no duplicate names; not looking for them saves time.
func readOptions(intact bool) jsonv2.Options {
	return jsonv2.JoinOptions(
		jsontext.AllowInvalidUTF8(true),
		jsontext.AllowDuplicateNames(intact),
		jsonv2.RejectUnknownMembers(true),
	)
}

// splitOptions are those of finding the parts of an object, whose names are
// compared when they are read.
func splitOptions() jsonv2.Options {
	return jsonv2.JoinOptions(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// reader reads the parts of a document.
type reader struct {
	options  jsonv2.Options
	specs    common[schema.Job]
	capacity common[schema.SliceSpec]
}

// decode reads what encode wrote.
func decode(document parts, options jsonv2.Options) (Document, error) {
	r, err := newReader(document[partCommon], options)
	if err != nil {
		return Document{}, within(partCommon, err)
	}
	var d Document
	if err := r.object(document.without(partCommon, partDesired, partSlices, partJobs), &d); err != nil {
		return Document{}, err
	}
	err = together(
		func() error { return within(partDesired, r.desired(document[partDesired], &d)) },
		func() error { return within(partSlices, r.slices(document[partSlices], &d)) },
		func() error { return within(partJobs, r.jobs(document[partJobs], &d)) },
	)
	if err != nil {
		return Document{}, err
	}
	r.shareDesired(&d)
	return d, nil
}

// within says which part of a document an error is about.
func within(part string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", part, err)
	}
	return err
}

func newReader(raw jsontext.Value, options jsonv2.Options) (*reader, error) {
	r := &reader{options: options}
	shared, err := splitObject(raw)
	if err != nil {
		return nil, err
	}
	for name := range shared.without(partJobs, partSlices) {
		return nil, fmt.Errorf("%w %q", jsonv2.ErrUnknownName, name)
	}
	if r.specs.shape, err = shapeOf[schema.Job](); err != nil {
		return nil, err
	}
	if r.capacity.shape, err = shapeOf[schema.SliceSpec](); err != nil {
		return nil, err
	}
	if r.specs.specs, err = readSpecs(r, &r.specs, shared[partJobs]); err != nil {
		return nil, within(partJobs, err)
	}
	if r.capacity.specs, err = readSpecs(r, &r.capacity, shared[partSlices]); err != nil {
		return nil, within(partSlices, err)
	}
	return r, nil
}

func (r *reader) object(p parts, v any) error { return jsonv2.Unmarshal(p.object(), v, r.options) }

// readEach reads the parts of an object or an array.
func readEach[T any](raw jsontext.Value, kind jsontext.Kind, read func(p part, out *T) error) ([]T, error) {
	found, err := split(raw, kind)
	if err != nil || found == nil {
		return nil, err
	}
	out := make([]T, len(found))
	return out, inChunks(len(found), func(_, from, to int) error {
		for i := from; i < to; i++ {
			if err := read(found[i], &out[i]); err != nil {
				return fmt.Errorf("%s: %w", found[i].label(i), err)
			}
		}
		return nil
	})
}

// readSpecs reads a list of specs.
func readSpecs[T any](r *reader, c *common[T], raw jsontext.Value) ([]T, error) {
	return readEach(raw, '[', func(p part, out *T) error {
		return c.read(p.value, out, func(*T) {}, r.options)
	})
}

func (r *reader) desired(raw jsontext.Value, d *Document) error {
	desired, err := splitObject(raw)
	if err == nil {
		err = r.object(desired.without(partJobs), &d.Desired)
	}
	if err == nil {
		d.Desired.Jobs, err = readSpecs(r, &r.specs, desired[partJobs])
	}
	return err
}

func (r *reader) slices(raw jsontext.Value, d *Document) error {
	read, err := readEach(raw, '{', r.slice)
	if err != nil || read == nil {
		return err
	}
	d.Slices = make(map[string]*Slice, len(read))
	for _, s := range read {
		if d.Slices[s.Spec.Name] != nil {
			return fmt.Errorf("%q is there twice", s.Spec.Name)
		}
		d.Slices[s.Spec.Name] = s
	}
	return nil
}

func (r *reader) slice(p part, out **Slice) error {
	s := new(Slice)
	form := sliceForm{Slice: s, Spec: &specForm[schema.SliceSpec]{
		common: &r.capacity,
		spec:   &s.Spec,
		preset: func(spec *schema.SliceSpec) { spec.Name = p.name },
	}}
	if err := jsonv2.Unmarshal(p.value, &form, r.options); err != nil {
		return err
	}
	if s.Spec.Name != p.name {
		return errors.New("it has no spec or another name")
	}
	if form.Doomed.is && s.Terminating.IsZero() {
		s.Terminating = s.termination(form.Doomed.value)
	}
	*out = s
	return nil
}

// jobs leaves the specs out that are the desired ones.
func (r *reader) jobs(raw jsontext.Value, d *Document) error {
	read, err := readEach(raw, '{', r.job)
	if err != nil || read == nil {
		return err
	}
	d.Jobs = make(map[schema.Address]*Job, len(read))
	for _, row := range read {
		if d.Jobs[row.addr] != nil {
			return fmt.Errorf("%q is there twice", row.addr)
		}
		d.Jobs[row.addr] = row.job
	}
	return nil
}

func (r *reader) job(p part, out *jobRow) error {
	addr, err := schema.ParseAddress(p.name)
	if err != nil {
		return err
	}
	j := new(Job)
	form := jobForm{Job: j, Spec: &specForm[schema.Job]{
		common: &r.specs,
		preset: func(spec *schema.Job) { spec.Addr = addr },
	}}
	if err := jsonv2.Unmarshal(p.value, &form, r.options); err != nil {
		return err
	}
	if form.Job == nil {
		return errors.New("it is empty")
	}
	if form.Spec != nil {
		j.Spec = form.Spec.spec
	}
	j.Attempts = form.attempts()
	*out = jobRow{addr: addr, job: j}
	return nil
}

// shareDesired makes the spec of a job the desired one where it was left out
// or is the same, so that they share their memory.
func (r *reader) shareDesired(d *Document) {
	byAddr := desiredByAddress(d.Desired.Jobs)
	for addr, j := range d.Jobs {
		desired := byAddr[addr]
		if desired != nil && (j.Spec == nil || r.specs.shape.same(elem(j.Spec), elem(desired))) {
			j.Spec = desired
		}
	}
}
