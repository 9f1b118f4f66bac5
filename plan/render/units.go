package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Duration is a duration as people read it, in at most two units: "850ms",
// "12s", "3m05s", "2h04m", "3d07h".
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + Duration(-d)
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d/time.Second), 10) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
}

// Since says how long before now something was: "12s ago", "in 3m05s" for what
// is still to come, "never" for the zero time.
func Since(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d < 0:
		return "in " + Duration(-d)
	default:
		return Duration(d) + " ago"
	}
}

// Capacity is a provider's capacity before and after a plan: "local 2 -> 5
// slices, 11 hosts, 32 chips (limit 8 slices)". What does not change stands
// once; what is zero both times is left out, slices excepted.
func Capacity(c plan.Capacity) string {
	var b strings.Builder
	b.WriteString(string(c.Provider))
	b.WriteByte(' ')
	b.WriteString(strings.Join(amounts(c.Before, c.After), ", "))
	if limit := limits(c.Limit); len(limit) > 0 {
		b.WriteString(" (limit ")
		b.WriteString(strings.Join(limit, ", "))
		b.WriteByte(')')
	}
	return b.String()
}

func amounts(before, after plan.Amount) []string {
	parts := []string{countedChange(before.Slices, after.Slices, "slice")}
	if before.Hosts != 0 || after.Hosts != 0 {
		parts = append(parts, countedChange(before.Hosts, after.Hosts, "host"))
	}
	if before.Chips != 0 || after.Chips != 0 {
		parts = append(parts, countedChange(before.Chips, after.Chips, "chip"))
	}
	if before.GPUs != 0 || after.GPUs != 0 {
		parts = append(parts, countedChange(before.GPUs, after.GPUs, "GPU"))
	}
	if before.CPU != 0 || after.CPU != 0 {
		parts = append(parts, countedChange(before.CPU, after.CPU, "CPU"))
	}
	if before.Memory != 0 || after.Memory != 0 {
		parts = append(parts, fromTo(before.Memory.String(), after.Memory.String())+" memory")
	}
	return parts
}

func limits(a plan.Amount) []string {
	var parts []string
	if a.Slices != 0 {
		parts = append(parts, plural(a.Slices, "slice"))
	}
	if a.Hosts != 0 {
		parts = append(parts, plural(a.Hosts, "host"))
	}
	if a.Chips != 0 {
		parts = append(parts, plural(a.Chips, "chip"))
	}
	if a.GPUs != 0 {
		parts = append(parts, plural(a.GPUs, "GPU"))
	}
	if a.CPU != 0 {
		parts = append(parts, plural(a.CPU, "CPU"))
	}
	if a.Memory != 0 {
		parts = append(parts, schema.Bytes.String(a.Memory)+" memory")
	}
	return parts
}

// capacity writes one line for each provider that has or gets any.
func (p *printer) capacity(capacity []plan.Capacity) {
	title := "Capacity:"
	for _, c := range capacity {
		if c.Before == (plan.Amount{}) && c.After == (plan.Amount{}) {
			continue
		}
		p.print(p.paint(bold, title), " ", Capacity(c), ".\n")
		title = strings.Repeat(" ", len(title))
	}
}

// expiries says of each reservation that ends when it does.
func (p *printer) expiries(expiries []plan.Expiry) {
	for _, e := range expiries {
		verb := "ends"
		if e.Over {
			verb = "has ended"
		}
		p.print(e.Addr.String(), " ", verb, " at ", e.At.UTC().Format(time.DateTime), " UTC.\n")
	}
}

func countedChange[N int | float64](before, after N, noun string) string {
	if before == after {
		return plural(after, noun)
	}
	if before > 1 || after != 1 {
		noun += "s"
	}
	return fromTo(number(float64(before)), number(float64(after))) + " " + noun
}

func fromTo(before, after string) string {
	if before == after {
		return after
	}
	return before + " -> " + after
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func plural[N int | float64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return number(float64(n)) + " " + noun
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
