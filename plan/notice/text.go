package notice

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fray-ml/fray/schema"
)

// Units of budgets.
const (
	UnitChips   = "chips"
	UnitDollars = "USD"
)

func budgetText(use *BudgetUse) string {
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) + " " + use.Unit }
	if use.Unit == UnitDollars {
		number = func(f float64) string { return fmt.Sprintf("$%.2f", f) }
	}
	text := fmt.Sprintf("uses %s of %s (%.0f%%)", number(use.Used), number(use.Limit), 100*use.Used/use.Limit)
	if use.Period != "" {
		text += " in " + use.Period
	}
	return text
}

// title is a notice in a line.
func title(kind schema.NoticeKind, status Status, items []Item) string {
	subject := name(&items[0])
	if len(items) > 1 {
		subject = fmt.Sprintf("%s and %d more", subject, len(items)-1)
	}
	resolved := status == Resolved
	switch kind {
	case schema.NoticeDrift:
		if resolved {
			return "Drift is repaired: " + subject
		}
		return "Drift: " + subject
	case schema.NoticeJobFailed:
		return "Failed: " + subject
	case schema.NoticeJobPending:
		if resolved {
			return "Not pending any more: " + subject
		}
		return "Pending for long: " + subject
	case schema.NoticeBudget:
		if resolved {
			return "Budget has room again: " + subject
		}
		return "Budget is nearly used: " + subject
	case schema.NoticeReservationEnded:
		return "Reservation has ended: " + subject
	case schema.NoticeLeaderChanged:
		return "Another process leads the stack"
	case schema.NoticeTest:
		return "A test of " + subject
	}
	return string(kind)
}

func name(item *Item) string {
	switch {
	case !item.Addr.IsZero():
		return item.Addr.String()
	case item.Slice != "":
		return "slice " + item.Slice
	}
	return "the stack"
}

// cut makes of a text one line of at most maxText bytes.
func cut(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= maxText {
		return text
	}
	end := maxText - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
