package state

import (
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// upgrade brings the top level of a document from one version to a later one.
type upgrade struct {
	from, to int
	change   func(document parts) error
}

// upgrades are all that there are. Builds from before the first release wrote
// versions 2 and 3, in a form that none reads any more.
func upgrades() []upgrade {
	return []upgrade{{from: 1, to: FormatVersion, change: typeSlices}}
}

// typeSlices types what version 1 recorded of slices as texts: why one was to be
// deleted (the cause follows from what else was recorded; the text is kept for
// people), and that a call failed.
func typeSlices(document parts) error {
	raw, ok := document[partSlices]
	if !ok {
		return nil
	}
	var recorded map[string]parts
	options := jsontext.AllowInvalidUTF8(true)
	if err := jsonv2.Unmarshal(raw, &recorded, options); err != nil {
		return fmt.Errorf("%s: %w", partSlices, err)
	}
	for name, s := range recorded {
		if err := s.typeSlice(); err != nil {
			return fmt.Errorf("%s: %q: %w", partSlices, name, err)
		}
	}
	typed, err := jsonv2.Marshal(recorded, options)
	document[partSlices] = typed
	return err
}

func (p parts) typeSlice() error {
	var former struct {
		Terminating string           `json:"doomed"`
		Taken       bool             `json:"taken"`
		Error       string           `json:"error"`
		Failed      schema.ErrorKind `json:"failed"`
	}
	if err := jsonv2.Unmarshal(p.object(), &former, jsontext.AllowInvalidUTF8(true)); err != nil {
		return err
	}
	_, terminating := p["doomed"]
	_, typed := p["terminating"]
	delete(p, "doomed")
	var err error
	if terminating && !typed {
		t := Termination{Cause: CauseUnknown, Text: former.Terminating}
		if former.Taken {
			t.Cause = CausePreempted
		}
		p["terminating"], err = jsonv2.Marshal(t)
	}
	if former.Error != "" && former.Failed == "" {
		p["failed"], err = jsonv2.Marshal(schema.ErrorUnavailable)
	}
	return err
}
