package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
)

// Scenario is the history in the language of scenarios (docs/guides/scenario.md).
func (h *History) Scenario() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the events of a stack tell of %s to %s.\n", h.From.UTC().Format(time.RFC3339), h.To.UTC().Format(time.RFC3339))
	b.WriteString("# Beyond it the cloud is calm: a longer rehearsal repeats nothing.\n")
	for _, z := range h.Zones {
		fmt.Fprintf(&b, "\nzone %q {\n", z.Name)
		writeSpan(&b, "provisioning", z.Creation)
		writeSpan(&b, "deletion", z.Deletion)
		b.WriteString("}\n")
	}
	for _, s := range h.Stockouts {
		fmt.Fprintf(&b, "\nstockout {\n  zone = %q\n", s.Zone)
		if s.Type != "" {
			fmt.Fprintf(&b, "  type = %q\n", s.Type)
		}
		fmt.Fprintf(&b, "  from = %q\n  to = %q\n}\n", offset(s.From), offset(s.To))
	}
	for _, l := range h.Losses {
		what := "preempt"
		if l.Host {
			what = "kill_host"
		}
		fmt.Fprintf(&b, "\nat %q {\n  %s = %q\n  zone = %q\n", offset(l.At), what, fmt.Sprintf("%s/%d", l.Job, l.Index), l.Zone)
		if l.Type != "" {
			fmt.Fprintf(&b, "  type = %q\n", l.Type)
		}
		if l.Silent {
			b.WriteString("  silent = true\n")
		}
		b.WriteString("}\n")
	}
	return hclwrite.Format([]byte(b.String()))
}

func writeSpan(b *strings.Builder, name string, s Span) {
	if s != (Span{}) {
		fmt.Fprintf(b, "  %s = [%q, %q]\n", name, offset(s.Low), offset(s.High))
	}
}

// offset is a time since the beginning, to a second and above 0.
func offset(d time.Duration) string {
	text := max(d.Round(time.Second), time.Second).String()
	if short, ok := strings.CutSuffix(text, "m0s"); ok {
		text = short + "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		text = short + "h"
	}
	return text
}

// Summary is what there is in a history, in words.
func (h *History) Summary() string {
	preempted, lost := 0, 0
	for _, l := range h.Losses {
		if l.Host {
			lost++
		} else {
			preempted++
		}
	}
	return fmt.Sprintf("%s, %s, %s, in %s", counted(preempted, "preempted slice"), counted(lost, "lost host"), counted(len(h.Stockouts), "stockout"),
		counted(len(h.Zones), "zone"))
}

func counted(n int, of string) string {
	if n != 1 {
		of += "s"
	}
	return fmt.Sprintf("%d %s", n, of)
}
