package markdown

import (
	"strconv"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

const failedTitle = "no plan could be made"

// titleOf is what a plan comes to.
func titleOf(pl *plan.Plan) string {
	counts := pl.Counts()
	switch {
	case pl.Mode == plan.ModeRefreshOnly && !pl.Empty():
		return plural(len(pl.Drift), "difference") + " to record in the state, and nothing that runs changes"
	case counts[plan.VerbNone] < len(pl.Changes) || len(pl.Amendments) > 0:
		return render.Counts(pl)
	case pl.OutputsChange():
		return "outputs change, and nothing that runs"
	case pl.Empty():
		return "no changes"
	}
	return "no changes asked for"
}

// whyNoChanges is the sentence about a plan that has none.
func whyNoChanges(mode plan.Mode) string {
	switch mode {
	case plan.ModeDestroy:
		return "There is nothing to destroy."
	case plan.ModeRefreshOnly:
		return "The state records what was observed."
	case plan.ModeApply:
	}
	return "What runs is what the files ask for."
}

// title is the first line of the document.
func (d *document) title(text string) string {
	what := "Plan"
	if d.in.Plan != nil {
		switch d.in.Plan.Mode {
		case plan.ModeDestroy:
			what = "Plan to destroy"
		case plan.ModeRefreshOnly:
			what = "Refresh only"
		case plan.ModeApply:
		}
	}
	return "## " + what + d.in.of() + ": " + text + "\n"
}

func (d *document) origin() string { return d.in.origin() }

// of names the configuration: " for `infra` in workspace `prod`".
func (in *Input) of() string {
	text := ""
	if in.Directory != "" {
		text += " for " + name(in.Directory)
	}
	if in.Workspace != "" && in.Workspace != schema.DefaultWorkspace {
		text += " in workspace " + name(in.Workspace)
	}
	return text
}

// origin is the line that states what a plan was made of.
func (in *Input) origin() string {
	var parts []string
	if in.Commit != "" {
		parts = append(parts, "Commit "+name(in.Commit))
	}
	if to := link("run", in.Run); to != "" {
		parts = append(parts, to)
	}
	if in.FrayVersion != "" {
		parts = append(parts, "fray "+name(in.FrayVersion))
	}
	if in.Plan != nil {
		parts = append(parts, "state serial "+strconv.FormatUint(in.Serial, 10)+", revision "+strconv.FormatUint(in.Revision, 10))
	}
	return strings.Join(parts, " · ")
}

// narrowed states what the targets of a plan leave out.
func narrowed(pl *plan.Plan) string {
	text := render.Narrowed(pl)
	if text == "" {
		return ""
	}
	return "**Narrowed:** " + message(text) + "\n"
}

// costLine is what a plan costs before and after it, for an hour and for a month.
func costLine(costs []plan.Cost) string {
	if len(costs) == 0 {
		return ""
	}
	t := planchange.Total(costs)
	var sums []string
	if t.Before.Known() || t.After.Known() {
		sums = append(sums, fromTo(render.Price(t.Before), render.Price(t.After))+" an hour, "+
			fromTo(render.Monthly(t.Before), render.Monthly(t.After))+" a month (730 hours)")
	}
	if t.UnknownBefore+t.UnknownAfter > 0 {
		sums = append(sums, "the price of "+fromToPlain(t.UnknownBefore, t.UnknownAfter)+" slices is not known")
	}
	return "**Cost:** " + strings.Join(sums, "; ") + ". Prices: " + accelerators.PricesFrom + ", without disks and traffic.\n"
}

func fromTo(before, after string) string {
	if before == after {
		return code(after) + " as before"
	}
	return code(before) + " → " + code(after)
}

func fromToPlain(before, after int) string {
	if before == after {
		return strconv.Itoa(after)
	}
	return strconv.Itoa(before) + " → " + strconv.Itoa(after)
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}
