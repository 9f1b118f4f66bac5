package render

import (
	"strings"

	"github.com/fray-ml/fray/plan"
)

// maxNarrowed is how many targets are named.
const maxNarrowed = 8

// Narrowed states what a plan leaves out because of its targets, "" if it has none.
func Narrowed(pl *plan.Plan) string {
	if len(pl.Targets) == 0 {
		return ""
	}
	names := make([]string, 0, maxNarrowed+1)
	for _, addr := range pl.Targets[:min(len(pl.Targets), maxNarrowed)] {
		names = append(names, clean(addr.String()))
	}
	if rest := len(pl.Targets) - maxNarrowed; rest > 0 {
		names = append(names, plural(rest, "more target"))
	}
	if pl.Mode == plan.ModeRefreshOnly {
		return "only " + strings.Join(names, ", ") + "; what else differs was not looked at."
	}
	return "only " + strings.Join(names, ", ") + ", and what they need; the rest of the configuration was not looked at."
}
