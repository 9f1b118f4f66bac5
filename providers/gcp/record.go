package gcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"github.com/fray-ml/fray/schema"
)

// What every slice carries. The labels say whose it is; the metadata says what
// was asked for.
const (
	stackLabel = "fray-stack" // SliceSpec.Stack
	sliceLabel = "fray-slice" // SliceSpec.Name
	specKey    = metadataSpec // in the metadata: the SliceSpec in JSON
)

func checkName(name string) error {
	if !regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`).MatchString(name) {
		return failf(schema.ErrorInvalid, "%q is no slice's name: want 1 to 63 of a-z, 0-9 and -, a letter first and no - last", name)
	}
	return nil
}

func checkSpec(spec schema.SliceSpec) error {
	if err := checkName(spec.Name); err != nil {
		return err
	}
	switch {
	case !regexp.MustCompile(`^[a-z0-9_-]{1,63}$`).MatchString(spec.Stack):
		return failf(schema.ErrorInvalid, "%q is no stack's mark: want 1 to 63 of a-z, 0-9, - and _", spec.Stack)
	case spec.Hosts < 1:
		return failf(schema.ErrorInvalid, "a slice needs at least one host, not %d", spec.Hosts)
	case !regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`).MatchString(spec.Zone):
		return failf(schema.ErrorInvalid, "%q is no zone; set zones in the provider block or in resources", spec.Zone)
	}
	return nil
}

func encodeSpec(spec schema.SliceSpec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encode what is asked for: %w", err)
	}
	return string(text), nil
}

// labelsOf are a slice's labels: the user's, and the marks, which win.
func labelsOf(spec schema.SliceSpec) map[string]string {
	labels := map[string]string{}
	for _, each := range split(spec.Cloud.Live.Labels) {
		key, value, _ := strings.Cut(each, "=")
		labels[key] = value
	}
	labels[stackLabel], labels[sliceLabel] = spec.Stack, spec.Name
	return labels
}

// split takes a list of CloudSpec apart, nil for "".
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// marks are what a thing of the cloud says about itself.
type marks struct {
	name, zone string // its own, as the cloud has them
	labels     map[string]string
	text       string // of specKey, "" if there is none
}

// owned reports whether it carries a stack's mark, any stack's for "".
func (m marks) owned(stack string) bool {
	mark := m.labels[stackLabel]
	return mark != "" && (stack == "" || mark == stack)
}

// spec reads what was asked for. It believes it only if it is of this very
// thing: a copy that somebody made, with all labels and metadata, is not ours.
func (m marks) spec() (schema.SliceSpec, error) {
	var spec schema.SliceSpec
	if m.text == "" {
		return spec, fmt.Errorf("its metadata has no %s", specKey)
	}
	if err := json.Unmarshal([]byte(m.text), &spec); err != nil {
		return spec, fmt.Errorf("its metadata's %s cannot be read: %w", specKey, err)
	}
	for _, each := range []struct{ what, said, is string }{
		{"label " + stackLabel, m.labels[stackLabel], spec.Stack},
		{"label " + sliceLabel, m.labels[sliceLabel], spec.Name},
		{"name", m.name, spec.Name},
		{"zone", m.zone, spec.Zone},
	} {
		if each.said != each.is && (each.what == "name" || each.what == "zone") {
			return spec, &copyError{of: spec.Name, mark: m.labels[stackLabel]}
		}
		if each.said != each.is {
			return spec, fmt.Errorf("its %s is %q, but its metadata's %s says %q", each.what, each.said, specKey, each.is)
		}
	}
	return spec, nil
}

// copyError says that a thing carries the marks of another one: somebody made it by
// copying that, with all labels and metadata.
type copyError struct{ of, mark string }

func (e *copyError) Error() string {
	return fmt.Sprintf("it carries the labels and metadata of slice %s of stack %s and is not that slice; delete it, or take its label %s away", e.of, e.mark, stackLabel)
}

func copyOf(m marks) error { return &copyError{of: m.labels[sliceLabel], mark: m.labels[stackLabel]} }

// skippedItem is a thing with the stack's mark that is left out of an inventory.
func skippedItem(m marks, err error) schema.SkippedItem {
	item := schema.SkippedItem{Name: m.name, Zone: m.zone, Reason: schema.SkipUnreadable, Text: err.Error()}
	if _, copied := errors.AsType[*copyError](err); copied {
		item.Reason = schema.SkipCopy
	}
	return item
}

// specs remembers what the marks of the last inventory said: decoding 2,000 of
// them in every Step would cost more than all the rest.
type specs struct {
	mu   sync.Mutex
	last map[string]decoded // by zone and name
}

type decoded struct {
	marks marks
	spec  schema.SliceSpec
}

// reader starts a new listing.
func (s *specs) reader() *specReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &specReader{specs: s, old: s.last, now: make(map[string]decoded, len(s.last))}
}

type specReader struct {
	specs    *specs
	old, now map[string]decoded
}

func (r *specReader) read(m marks) (schema.SliceSpec, error) {
	key := m.zone + "/" + m.name
	known, ok := r.old[key]
	if !ok || known.marks.text != m.text || !maps.Equal(known.marks.labels, m.labels) {
		spec, err := m.spec()
		if err != nil {
			return spec, err
		}
		known = decoded{marks: m, spec: spec}
	}
	r.now[key] = known
	return known.spec, nil
}

// done keeps what was read for the next listing, and nothing of before.
func (r *specReader) done() {
	r.specs.mu.Lock()
	defer r.specs.mu.Unlock()
	r.specs.last = r.now
}
