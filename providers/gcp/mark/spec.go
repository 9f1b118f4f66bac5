package mark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/schema"
)

// EngineOf is the engine that makes a slice.
func EngineOf(spec schema.SliceSpec) schema.Engine {
	return cmp.Or(spec.Cloud.Engine, accelerators.EngineOf(spec.TPU, spec.Zone, nil))
}

const (
	letters = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

// consistsOf reports whether a text has 1 to 63 characters, all of a set.
func consistsOf(text, set string) bool {
	return len(text) >= 1 && len(text) <= 63 && strings.Trim(text, set) == ""
}

// isName reports whether a text is fit to be the name of a resource.
func isName(text string) bool {
	return consistsOf(text, letters+digits+"-") && strings.Contains(letters, text[:1]) && !strings.HasSuffix(text, "-")
}

// isZone reports whether a text reads as a zone does, "us-west4-a".
func isZone(text string) bool {
	region, rest, ok := strings.Cut(text, "-")
	if !ok || !consistsOf(region, letters) {
		return false
	}
	for part := range strings.SplitSeq(rest, "-") {
		if !consistsOf(part, letters+digits) {
			return false
		}
	}
	return true
}

// CheckName rejects what no slice may be named.
func CheckName(name string) error {
	if !isName(name) {
		return apierror.Errorf(schema.ErrorInvalid, "%q is no slice's name: want 1 to 63 of a-z, 0-9 and -, a letter first and no - last", name)
	}
	return nil
}

// CheckSpec rejects a spec that no engine could make.
func CheckSpec(spec schema.SliceSpec) error {
	if err := CheckName(spec.Name); err != nil {
		return err
	}
	switch {
	case !consistsOf(spec.Stack, letters+digits+"-_"):
		return apierror.Errorf(schema.ErrorInvalid, "%q is no stack's mark: want 1 to 63 of a-z, 0-9, - and _", spec.Stack)
	case spec.Hosts < 1:
		return apierror.Errorf(schema.ErrorInvalid, "a slice needs at least one host, not %d", spec.Hosts)
	case !isZone(spec.Zone):
		return apierror.Errorf(schema.ErrorInvalid, "%q is no zone; set zones in the provider block or in resources", spec.Zone)
	}
	return nil
}

// Encode is a spec as the metadata of its machines records it.
func Encode(spec schema.SliceSpec) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", fmt.Errorf("encode what is asked for: %w", err)
	}
	return string(text), nil
}

// Labels are a slice's labels: the user's, and the marks, which win.
func Labels(spec schema.SliceSpec) map[string]string {
	labels := map[string]string{}
	for _, each := range SplitList(spec.Cloud.Live.Labels) {
		key, value, _ := strings.Cut(each, "=")
		labels[key] = value
	}
	labels[StackLabel], labels[SliceLabel] = spec.Stack, spec.Name
	return labels
}

// SplitList takes a list of CloudSpec apart, nil for "".
func SplitList(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
