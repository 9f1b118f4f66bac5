package review

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan"
)

// Output is an output of a job's step.
type Output struct{ Name, Value string }

// Outputs are those of a plan. A number that is not known is empty.
func (r *Report) Outputs() []Output {
	outcome := r.Outcome()
	out := []Output{{"outcome", string(outcome)}, {"exitcode", fmt.Sprint(outcome.ExitCode())}}
	p := r.Planned
	if p == nil {
		p = &Planned{}
	}
	number := func(verb plan.Verb) string {
		if r.Planned == nil {
			return ""
		}
		return fmt.Sprint(p.Counts[verb])
	}
	changes := ""
	if r.Planned != nil {
		changes = fmt.Sprint(p.Changes)
	}
	out = append(out, Output{"changes", changes})
	for _, verb := range verbs() {
		out = append(out, Output{string(verb), number(verb)})
	}
	low, high := "", ""
	if after := p.Cost.After; after.Known() || r.Planned != nil && p.Cost.UnknownAfter == 0 {
		low, high = fmt.Sprintf("%.2f", after.Low), fmt.Sprintf("%.2f", after.High)
	}
	return append(out, Output{"cost_low", low}, Output{"cost_high", high},
		Output{"plan", p.File}, Output{"plan_sha256", p.Digest}, Output{"artifact", r.artifact()})
}

// artifact is the name under which the plan is kept; "" where it was not saved.
func (r *Report) artifact() string {
	if r.Planned == nil || r.Planned.File == "" {
		return ""
	}
	return r.Target.Artifact()
}

// OutputLines are outputs as GitHub reads them from a file. The delimiter of a value of
// several lines is a text that no value has, so that none adds outputs of its own.
func OutputLines(outputs []Output, delimiter string) string {
	var b strings.Builder
	for _, o := range outputs {
		if strings.ContainsAny(o.Value, "\r\n") {
			fmt.Fprintf(&b, "%s<<%s\n%s\n%s\n", o.Name, delimiter, o.Value, delimiter)
			continue
		}
		fmt.Fprintf(&b, "%s=%s\n", o.Name, o.Value)
	}
	return b.String()
}

// Dotenv are outputs as variables of a file that GitLab reads: FRAY_CHANGES=true. What such a
// file cannot hold is left out.
func Dotenv(outputs []Output) string {
	var b strings.Builder
	for _, o := range outputs {
		if strings.ContainsAny(o.Value, "\r\n") {
			continue
		}
		fmt.Fprintf(&b, "FRAY_%s=%s\n", strings.ToUpper(o.Name), o.Value)
	}
	return b.String()
}
