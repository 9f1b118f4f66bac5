package mark

import (
	"encoding/json"
	"fmt"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/schema"
)

// What every slice carries. The labels state whose it is; the metadata states what
// was asked for.
const (
	StackLabel = "fray-stack" // SliceSpec.Stack
	SliceLabel = "fray-slice" // SliceSpec.Name
	SpecKey    = KeySpec      // in the metadata: the SliceSpec in JSON
)

// Marks are what a resource of the cloud records about itself.
type Marks struct {
	Name, Zone string // its own, as the cloud has them
	Labels     map[string]string
	Text       string // of specKey, "" if there is none
}

// Owned reports whether it carries a stack's mark, any stack's for "".
func (m Marks) Owned(stack string) bool {
	mark := m.Labels[StackLabel]
	return mark != "" && (stack == "" || mark == stack)
}

// Spec reads what was asked for. It believes it only if it is of this very
// resource: a copy, with all labels and metadata, is not ours.
func (m Marks) Spec() (schema.SliceSpec, error) {
	var spec schema.SliceSpec
	if m.Text == "" {
		return spec, fmt.Errorf("its metadata has no %s", SpecKey)
	}
	if err := json.Unmarshal([]byte(m.Text), &spec); err != nil {
		return spec, fmt.Errorf("its metadata's %s cannot be read: %w", SpecKey, err)
	}
	for _, each := range []struct{ what, found, is string }{
		{"label " + StackLabel, m.Labels[StackLabel], spec.Stack},
		{"label " + SliceLabel, m.Labels[SliceLabel], spec.Name},
		{"name", m.Name, spec.Name},
		{"zone", m.Zone, spec.Zone},
	} {
		if each.found != each.is && (each.what == "name" || each.what == "zone") {
			return spec, &CopyError{of: spec.Name, mark: m.Labels[StackLabel]}
		}
		if each.found != each.is {
			return spec, fmt.Errorf("its %s is %q, but its metadata's %s states %q", each.what, each.found, SpecKey, each.is)
		}
	}
	return spec, nil
}

// Unreadable is why a slice cannot be listed. Listed without its owner, it would be
// deleted.
func Unreadable(marks Marks, err error) error {
	return apierror.Errorf(schema.ErrorUnavailable, "%s in %s carries the mark of stack %s, but %w; correct that, delete it, or take its label %s away",
		marks.Name, marks.Zone, marks.Labels[StackLabel], err, StackLabel)
}
