package costreport

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/state"
)

// column is one of a table of sums.
type column struct {
	name string
	of   func(*accounting.Sum) string
}

// columns are those that have something to show.
func (r *report) columns() []column {
	hours := func(name string, of func(*accounting.Sum) float64) (c []column) {
		if of(&r.total) > 0 {
			c = []column{{name, func(s *accounting.Sum) string { return number(of(s)) }}}
		}
		return c
	}
	all := hours("CHIP-HOURS", func(s *accounting.Sum) float64 { return s.Chips })
	all = append(all, hours("GPU-HOURS", func(s *accounting.Sum) float64 { return s.GPUs })...)
	all = append(all, hours("CORE-HOURS", func(s *accounting.Sum) float64 { return s.Cores })...)
	all = append(all, column{"SLICE-HOURS", func(s *accounting.Sum) string { return number(s.Slices) }})
	return append(all, column{"COST", costText}, column{"GOODPUT", goodputText})
}

// table prints rows under their names, numbers to the right, and a sum below.
func (r *report) table(w io.Writer) error {
	columns := r.columns()
	var lines [][]string
	head := make([]string, 0, len(r.Query.By)+len(columns))
	for _, d := range r.Query.By {
		head = append(head, strings.ToUpper(string(d)))
	}
	for _, c := range columns {
		head = append(head, c.name)
	}
	lines = append(lines, head)
	for i := range r.rows {
		var line []string
		for _, value := range r.rows[i].Values {
			line = append(line, shown(value))
		}
		lines = append(lines, appendSums(line, columns, &r.rows[i].Sum))
	}
	requests := r.requestRows()
	for _, q := range requests {
		line := make([]string, 0, len(head))
		for _, value := range q.values {
			line = append(line, shown(value))
		}
		for range columns {
			line = append(line, "-")
		}
		line[len(line)-2] = cents(accounting.RequestCost(q.sum)) // the column COST
		lines = append(lines, line)
	}
	if len(r.rows)+len(requests) > 1 && len(r.Query.By) > 0 {
		line := make([]string, len(r.Query.By))
		line[0] = "total"
		lines = append(lines, appendSums(line, columns, r.all()))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "From %s to %s:\n\n", r.Query.Since.Format(shownTime), r.Query.Until.Format(shownTime))
	writeAligned(&b, lines, len(r.Query.By))
	b.WriteString("\n" + r.notes())
	_, err := io.WriteString(w, b.String())
	return err
}

func appendSums(line []string, columns []column, s *accounting.Sum) []string {
	for _, c := range columns {
		line = append(line, c.of(s))
	}
	return line
}

// writeAligned writes lines in columns, the first few of them to the left.
func writeAligned(b *strings.Builder, lines [][]string, left int) {
	width := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var out strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				out.WriteString("  ")
			}
			if i < left {
				out.WriteString(cell + pad)
			} else {
				out.WriteString(pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

// shown is a value of a row, inert, "-" for none.
func shown(value string) string {
	if value == "" {
		return "-"
	}
	return printable(value)
}

// number is an amount of hours.
func number(hours float64) string {
	switch {
	case hours == 0:
		return "-"
	case hours < 0.095:
		return fmt.Sprintf("%.4f", hours)
	case hours < 100:
		return fmt.Sprintf("%.2f", hours)
	}
	return fmt.Sprintf("%.0f", hours)
}

// costText is "$12.00–$15.60", with what has no price said beside it.
func costText(s *accounting.Sum) string {
	cost := ""
	if s.Slices > s.Free+s.Unpriced {
		cost = render.Price(accelerators.Price(s.Cost))
	}
	switch {
	case s.Unpriced == 0 && cost == "":
		return "no price"
	case s.Unpriced == 0:
		return cost
	case cost == "":
		return "not known"
	}
	return cost + " + not known"
}

func goodputText(s *accounting.Sum) string {
	low, high, known := s.Useful()
	if !known {
		return "-"
	}
	from, to := percent(low), percent(high)
	if from == to {
		return to + "%"
	}
	return from + "–" + to + "%"
}

func percent(part float64) string { return fmt.Sprintf("%.0f", math.Floor(100*part+1e-9)) }

// notes say what the numbers are, and what is not in them.
func (r *report) notes() string {
	var b strings.Builder
	t := &r.total
	parts := []string{}
	for _, use := range state.SliceUses() {
		if hours := t.Uses[use]; hours > 0 {
			parts = append(parts, fmt.Sprintf("%s %s%%", use, percent(hours/t.Hosts)))
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(&b, "Time of hosts: %s.\n", strings.Join(parts, ", "))
	}
	if t.Cost != (state.Dollars{}) {
		fmt.Fprintf(&b, "Prices: %s, or those of offers, as they were when the time passed; without disks and traffic; not your bill.\n", accelerators.PricesFrom)
	}
	if t.Unpriced > 0 {
		fmt.Fprintf(&b, "The price of %s slice-hours is not known: they are in no sum of dollars. An offer of the provider states one.\n", number(t.Unpriced))
	}
	if t.Free > 0 {
		fmt.Fprintf(&b, "%s slice-hours have no price: slices of this machine, or of a Ray cluster that is there already.\n", number(t.Free))
	}
	b.WriteString(r.requestNotes())
	if t.Estimated > 0 {
		fmt.Fprintf(&b, "%s slice-hours are estimated: no controller ran, and the slices were gone when one did. They are in the upper end of the cost alone.\n", number(t.Estimated))
	}
	b.WriteString("Goodput is the part of the paid time in which attempts were ready; its lower end is without attempts that failed or were lost.\n")
	for i := range r.budgets {
		text := render.MoneyBudget(&r.budgets[i])
		b.WriteString(strings.ToUpper(text[:1]) + text[1:] + "\n")
	}
	return b.String()
}

// printable is a text without characters that do something to a terminal.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\\`, `\`)
}
