package mark

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// Edited is what labels and tags have otherwise than a spec asks for, as in
// schema.SliceStatus. Labels and tags of other people's making are none of it.
func Edited(spec *schema.SliceSpec, labels map[string]string, tags []string) []string {
	var edited []string
	for _, each := range SplitList(spec.Cloud.Live.Labels) {
		key, want, _ := strings.Cut(each, "=")
		is, there := labels[key]
		switch {
		case !there:
			edited = append(edited, fmt.Sprintf("label %s is missing", key))
		case is != want:
			edited = append(edited, fmt.Sprintf("label %s is %q instead of %q", key, is, want))
		}
	}
	for _, tag := range SplitList(spec.Cloud.Live.Tags) {
		if !slices.Contains(tags, tag) {
			edited = append(edited, fmt.Sprintf("network tag %s is missing", tag))
		}
	}
	return edited
}
