package state

import (
	"bytes"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/checksum"
)

func writeOptions() jsonv2.Options {
	return jsonv2.JoinOptions(
		jsonv1.OmitEmptyWithLegacySemantics(true),
		jsonv2.FormatNilSliceAsNull(true),
		jsonv2.FormatNilMapAsNull(true),
		jsonv2.Deterministic(true),
		jsontext.PreserveRawStrings(true),
		// What programs say need not be UTF-8; what is not is replaced.
		jsontext.AllowInvalidUTF8(true),
		// Saves time: the names are those of structs and maps.
		jsontext.AllowDuplicateNames(true),
	)
}

// encode writes a document in one line.
func encode(d *Document) ([]byte, error) {
	l, err := layoutOf(d)
	if err != nil {
		return nil, err
	}
	w := &writer{layout: l, options: writeOptions()}
	out := w.object(headForm{Document: d})
	out = out.with(partCommon, w.common())
	out = out.with(partDesired, w.desiredPart(d.Desired))
	out = out.with(partSlices, w.slicesPart())
	out = out.with(partJobs, w.jobsPart())
	return out.join(checksum.MaxSize), w.err
}

// pieces are JSON once they are joined.
type pieces [][]byte

// join puts the pieces together, with room behind them.
func (object pieces) join(room int) []byte {
	size := room
	for _, piece := range object {
		size += len(piece)
	}
	out := make([]byte, 0, size)
	for _, piece := range object {
		out = append(out, piece...)
	}
	return out
}

// with adds a member to an object that ends with its brace; none if it has no value.
func (object pieces) with(name string, value pieces) pieces {
	if len(object) == 0 || len(value) == 0 {
		return object
	}
	end := len(object) - 1
	last := bytes.TrimSuffix(object[end], []byte("}"))
	comma := ","
	if end == 0 && len(last) == 1 {
		comma = ""
	}
	object = append(object[:end:end], last, []byte(comma+`"`+name+`":`))
	return append(append(object, value...), []byte("}"))
}

// writer writes the parts of a document. After an error it writes nothing.
type writer struct {
	*layout

	options jsonv2.Options
	err     error
}

// object writes a struct.
func (w *writer) object(v any) pieces {
	if w.err != nil {
		return nil
	}
	out, err := jsonv2.Marshal(v, w.options)
	w.err = err
	return pieces{out}
}

// list writes n values in brackets or braces, nothing if there are none.
func (w *writer) list(brackets string, n int, write func(enc *jsontext.Encoder, i int) error) pieces {
	if w.err != nil || n == 0 {
		return nil
	}
	chunks := make(pieces, (n+chunkSize-1)/chunkSize)
	w.err = inChunks(n, func(chunk, from, to int) error {
		var b bytes.Buffer
		b.Grow((to - from) * usualSize)
		enc := jsontext.NewEncoder(&b, w.options)
		begin, end := jsontext.BeginArray, jsontext.EndArray
		if brackets == "{}" {
			begin, end = jsontext.BeginObject, jsontext.EndObject
		}
		if err := enc.WriteToken(begin); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			if err := write(enc, i); err != nil {
				return err
			}
		}
		if err := enc.WriteToken(end); err != nil {
			return err
		}
		// The brackets of all but the outermost chunks become commas.
		chunks[chunk] = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		if chunk > 0 {
			chunks[chunk][0] = ','
		}
		if to < n {
			chunks[chunk] = chunks[chunk][:b.Len()-2]
		}
		return nil
	})
	return chunks
}

func (w *writer) common() pieces {
	specs := w.list("[]", len(w.specs.specs), func(enc *jsontext.Encoder, i int) error {
		return w.specs.write(enc, &w.specs.specs[i], alone, func(*schema.Job) {})
	})
	capacity := w.list("[]", len(w.capacity.specs), func(enc *jsontext.Encoder, i int) error {
		return w.capacity.write(enc, &w.capacity.specs[i], alone, func(*schema.SliceSpec) {})
	})
	if specs == nil && capacity == nil {
		return nil
	}
	return pieces{[]byte("{}")}.with(partJobs, specs).with(partSlices, capacity)
}

func (w *writer) desiredPart(d schema.Desired) pieces {
	return w.object(desiredForm{Desired: &d}).with(partJobs, w.list("[]", len(d.Jobs), func(enc *jsontext.Encoder, i int) error {
		return w.specs.write(enc, &d.Jobs[i], w.desired[i], func(*schema.Job) {})
	}))
}

func (w *writer) slicesPart() pieces {
	return w.list("{}", len(w.slices), func(enc *jsontext.Encoder, i int) error {
		r := &w.slices[i]
		if err := enc.WriteToken(jsontext.String(r.name)); err != nil {
			return err
		}
		return jsonv2.MarshalEncode(enc, &sliceForm{Slice: r.slice, Spec: &specForm[schema.SliceSpec]{
			spec: &r.slice.Spec, common: &w.capacity, like: r.like,
			preset: func(spec *schema.SliceSpec) { spec.Name = r.name },
		}})
	})
}

func (w *writer) jobsPart() pieces {
	return w.list("{}", len(w.jobs), func(enc *jsontext.Encoder, i int) error {
		r := &w.jobs[i]
		if err := enc.WriteToken(jsontext.String(r.addr.String())); err != nil {
			return err
		}
		form := &jobForm{Job: r.job, Attempts: attemptForms(r.job)}
		if r.desired == nil {
			form.Spec = &specForm[schema.Job]{
				spec: r.job.Spec, common: &w.specs, like: r.like,
				preset: func(spec *schema.Job) { spec.Addr = r.addr },
			}
		}
		return jsonv2.MarshalEncode(enc, form)
	})
}
