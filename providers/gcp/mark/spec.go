package mark

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/schema"
)

// EngineOf is the engine that makes a slice.
func EngineOf(spec schema.SliceSpec) schema.Engine {
	return cmp.Or(spec.Cloud.Engine, accelerators.EngineOf(spec.TPU, spec.Zone, nil))
}

// The patterns are compiled once: every call to a provider asks for them.
var (
	namePattern  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	stackPattern = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)
	zonePattern  = regexp.MustCompile(`^[a-z]+(-[a-z0-9]+)+$`)
)

// CheckName rejects what no slice may be named.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
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
	case !stackPattern.MatchString(spec.Stack):
		return apierror.Errorf(schema.ErrorInvalid, "%q is no stack's mark: want 1 to 63 of a-z, 0-9, - and _", spec.Stack)
	case spec.Hosts < 1:
		return apierror.Errorf(schema.ErrorInvalid, "a slice needs at least one host, not %d", spec.Hosts)
	case !zonePattern.MatchString(spec.Zone):
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
