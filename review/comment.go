package review

import (
	"strings"
	"unicode/utf8"
)

// What forges accept.
const (
	MaxComment = 65_536  // characters of a comment on GitHub, counted here as bytes
	MaxSummary = 1 << 20 // bytes of a job's summary on GitHub
)

// Comment is the whole comment: marker, plan, what policies and checks say, and where it
// comes from. It has at most limit bytes.
func (r *Report) Comment(limit int) string {
	head := r.Marker().Encode() + "\n"
	return head + r.Text(limit-len(head))
}

// Text is the comment without its marker.
func (r *Report) Text(limit int) string {
	head, foot := r.heading(), r.footer()
	room := limit - len(head) - len(foot)
	// Problems and findings are why the job failed, so that they have room before the plan has.
	rest := clip(r.problems()+r.findings()+r.notes(), room*2/3)
	body := ""
	if r.Planned != nil && r.Planned.Changes {
		body = strings.TrimRight(r.Planned.Markdown(room-len(rest)-2), "\n") + "\n\n"
	}
	return head + body + rest + foot
}

// heading names the target, and says how it went where no plan does.
func (r *Report) heading() string {
	title := "### fray plan: " + r.Target.Markdown() + "\n\n"
	switch r.Outcome() {
	case OutcomeUnchanged:
		return "**fray plan** of " + r.Target.Markdown() + ": no changes.\n\n"
	case OutcomeValidated:
		return title + r.skipped() + "\n\n"
	case OutcomeFailed:
		if r.Failure != "" {
			return title + "**There is no plan.**\n\n" + Block(r.Failure) + "\n"
		}
		if r.Planned == nil {
			return title + "**There is no plan:** the files have " + counted(r.Errors(), "error", "errors") + ".\n\n"
		}
		return title + "**This plan cannot be applied as it is.**\n\n"
	case OutcomeDenied:
		return title + "**Policies deny this plan:** " + counted(r.denials(), "rule", "rules") + ".\n\n"
	case OutcomeChanges:
	}
	return title
}

// skipped says why there is no plan.
func (r *Report) skipped() string {
	switch r.Skipped {
	case SkippedFork:
		return "The files are valid. **The plan is skipped:** this pull request comes from a fork, whose jobs get no secrets. A maintainer sees the plan once the commits are on a branch of this repository."
	case SkippedUnknown:
		return "The files are valid. **The plan is skipped:** it is not known whether this pull request comes from a fork, whose jobs get no secrets."
	}
	return "The files are valid."
}

// problems lists what is wrong with the files, the errors first.
func (r *Report) problems() string {
	var errors, warnings strings.Builder
	for _, p := range r.Problems {
		b := &errors
		if p.Severity == SeverityWarning {
			b = &warnings
		}
		text := p.Title
		if place := p.Place(); place != "" {
			text = place + ": " + text
		}
		if p.Text != "" {
			text += "\n" + p.Text
		}
		b.WriteString(Block(text) + "\n")
	}
	out := ""
	if errors.Len() > 0 {
		out += "#### Errors\n\n" + errors.String()
	}
	if warnings.Len() > 0 {
		out += "#### Warnings\n\n" + warnings.String()
	}
	return out
}

// findings lists what policies say.
func (r *Report) findings() string {
	if len(r.Findings) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("#### Policies\n\n")
	for _, f := range r.Findings {
		switch {
		case f.stops():
			b.WriteString("- **deny** ")
		case f.Denies:
			b.WriteString("- deny, overridden by " + Code(f.Override) + " ")
		default:
			b.WriteString("- warn ")
		}
		b.WriteString(Code(f.Policy) + ": " + Code(f.Message) + "\n")
	}
	return b.String() + "\n"
}

func (r *Report) notes() string {
	var b strings.Builder
	for _, note := range r.Notes {
		b.WriteString("> " + Code(note) + "\n\n")
	}
	return b.String()
}

// footer says which commit and run it comes from.
func (r *Report) footer() string {
	var parts []string
	if r.Run.Commit != "" {
		parts = append(parts, "commit "+Code(short(r.Run.Commit)))
	}
	if r.Run.URL != "" {
		parts = append(parts, "[run]("+link(r.Run.URL)+")")
	}
	if r.Planned != nil && r.Planned.File != "" && r.Planned.Changes {
		parts = append(parts, "saved plan: artifact "+Code(r.Target.Artifact()))
	}
	parts = append(parts, "fray "+Code(r.Version))
	return "<sub>" + strings.Join(parts, " · ") + "</sub>\n"
}

// short is a commit as people write it.
func short(commit string) string { return commit[:min(len(commit), 10)] }

// link is a URL that cannot end the link which it stands in.
func link(url string) string {
	return strings.NewReplacer("(", "%28", ")", "%29", " ", "%20", "<", "%3C", ">", "%3E", "\n", "").Replace(url)
}

// clip cuts a text of blocks at the end of one of them.
func clip(text string, room int) string {
	if len(text) <= room {
		return text
	}
	const rest = "**There are more; the log of the run has all of them.**\n\n"
	cut := strings.LastIndex(text[:max(0, room-len(rest))], "\n\n")
	if cut < 0 {
		return rest
	}
	// A block of code has empty lines too: only one that is closed ends at one.
	for cut > 0 && !closed(text[:cut]) {
		cut = strings.LastIndex(text[:cut], "\n\n")
	}
	return strings.ToValidUTF8(text[:max(0, cut)], string(utf8.RuneError)) + "\n\n" + rest
}

// closed reports whether every block of code of a text is closed.
func closed(text string) bool {
	open := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case open == "" && strings.HasPrefix(line, "```"):
			open = strings.TrimRight(line, "abcdefghijklmnopqrstuvwxyz")
		case open != "" && line == open:
			open = ""
		}
	}
	return open == ""
}

// Applied is the comment of an apply.
func (a *Applied) Comment() string {
	head := a.Marker().Encode() + "\n### fray apply: " + a.Target.Markdown() + "\n\n"
	foot := (&Report{Run: a.Run, Version: a.Version}).footer()
	text := "**" + a.Outcome.sentence() + "**\n\n"
	if a.Text != "" {
		text += Block(a.Text) + "\n"
	}
	return head + text + foot
}

// Summary is the comment without its marker.
func (a *Applied) Summary() string {
	_, text, _ := strings.Cut(a.Comment(), "\n")
	return text
}
