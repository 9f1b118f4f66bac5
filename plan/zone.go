package plan

import (
	"maps"

	"github.com/fray-ml/fray/schema"
)

// WithLabels are the labels of a provider's slices with those of one job over them.
func WithLabels(live schema.CloudLive, labels map[string]string) schema.CloudLive {
	if len(labels) == 0 {
		return live
	}
	all := live.LabelMap()
	maps.Copy(all, labels)
	live.Labels = schema.JoinLabels(all)
	return live
}
