package review

import (
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/plan/markdown"
)

// MaxSummary is how many bytes of a job's summary GitHub shows: a longer one is dropped.
const MaxSummary = 1 << 20

// elsewhere is where a plan is as a whole that is too long for a comment.
const elsewhere = "the log of the run"

// Comment is the whole comment: marker, plan, what checks and policies say, and where it comes
// from. It fits what GitHub takes.
func (r *Report) Comment() string {
	head := r.Marker().Encode() + "\n"
	return head + r.text(markdown.CommentCharacters-utf8.RuneCountInString(head))
}

// Summary is the comment without its marker, in at most limit bytes.
func (r *Report) Summary(limit int) string {
	text := r.text(limit)
	if len(text) > limit { // of characters that take several bytes
		text = r.text(limit / utf8.UTFMax)
	}
	return text
}

// text is the comment without its marker, in a number of characters.
func (r *Report) text(limit int) string {
	rest := r.rest()
	if r.Outcome() == OutcomeValidated {
		return r.validated() + rest
	}
	room := limit - utf8.RuneCountInString(rest)
	return markdown.Render(r.input(), markdown.Limit{Characters: max(room, markdown.LeastCharacters), Rest: elsewhere}) + rest
}

// input is what is shown of the plan, or of why there is none.
func (r *Report) input() markdown.Input {
	in := markdown.Input{}
	if r.Planned != nil {
		in = r.Planned.Shown
	}
	in.Directory, in.Workspace, in.Commit, in.Run, in.FrayVersion = r.Target.Dir, r.Target.Workspace, short(r.Run.Commit), r.Run.URL, r.Version
	in.Policies, in.Problems = r.Policies, nil
	if r.Failure != "" {
		in.Plan = nil
		in.Problems = append(in.Problems, markdown.Problem{Severity: markdown.SeverityDeny, Summary: "There is no plan", Detail: r.Failure})
	}
	for _, severity := range []Severity{SeverityError, SeverityWarning} {
		for _, p := range r.Problems {
			if p.Severity == severity {
				in.Problems = append(in.Problems, p.shown())
			}
		}
	}
	return in
}

// shown is a problem as a review shows it.
func (p Problem) shown() markdown.Problem {
	out := markdown.Problem{Severity: markdown.SeverityWarn, Summary: p.Title, Detail: p.Text, File: p.File, Line: p.Line}
	if p.Severity == SeverityError {
		out.Severity = markdown.SeverityDeny
	}
	return out
}

// rest is what stands below the plan.
func (r *Report) rest() string {
	var b strings.Builder
	for _, note := range r.Notes {
		b.WriteString("\n> " + Code(note) + "\n")
	}
	if artifact := r.artifact(); artifact != "" {
		b.WriteString("\nThe saved plan is the artifact " + Code(artifact) + ".\n")
	}
	return b.String()
}

// validated says that the files are valid, and why there is no plan.
func (r *Report) validated() string {
	why := ""
	switch r.Skipped {
	case SkippedFork:
		why = "this pull request comes from a fork, whose jobs get no secrets. There is a plan once its commits are on a branch of this repository"
	case SkippedUnknown:
		why = "it is not known whether this pull request comes from a fork, whose jobs get no secrets"
	}
	var b strings.Builder
	b.WriteString("## Plan for " + r.Target.Markdown() + ": skipped\n\nThe files are valid. **The plan is skipped:** " + why + ".\n\n" + r.footer())
	for _, p := range r.Problems {
		b.WriteString("\n- " + Code(strings.TrimPrefix(p.Place()+": "+p.Title+": "+p.Text, ": ")))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// footer says which commit and run it comes from.
func (r *Report) footer() string { return footer(r.Run, r.Version) }

func footer(run Run, version string) string {
	var parts []string
	if run.Commit != "" {
		parts = append(parts, "Commit "+Code(short(run.Commit)))
	}
	if run.URL != "" {
		parts = append(parts, "[run](<"+strings.NewReplacer("<", "%3C", ">", "%3E", "\n", "", "\\", "%5C").Replace(run.URL)+">)")
	}
	parts = append(parts, "fray "+Code(version))
	return strings.Join(parts, " · ") + "\n"
}

// short is a commit as people write it.
func short(commit string) string { return commit[:min(len(commit), 10)] }
