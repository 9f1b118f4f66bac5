// Package selection is which jobs of a stack are shown, and sums of them by what they have in
// common. It reads no store and prints nothing. Start with [Of] and [Matches].
package selection

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Field is a closed set of what jobs are filtered and grouped by.
type Field string

// The fields.
const (
	FieldName      Field = "name" // its address
	FieldNamespace Field = "namespace"
	FieldState     Field = "state"
	FieldZone      Field = "zone" // of its slices
	FieldProvider  Field = "provider"
	FieldType      Field = "type" // of its slices: v5litepod-16, 8 h100
	FieldBand      Field = "band"
	FieldUser      Field = "user"
	FieldWaits     Field = "waits"  // what for
	FieldReason    Field = "reason" // why it waits, failed or was stopped
)

// DefaultRows is how many jobs have a line each where nothing else is asked for; more are folded.
const DefaultRows = 200

// Fields are all of them.
func Fields() []Field {
	return append([]Field{FieldName}, append(GroupFields(), FieldReason)...)
}

// GroupFields are those that jobs are grouped by.
func GroupFields() []Field {
	return []Field{FieldNamespace, FieldState, FieldZone, FieldProvider, FieldType, FieldBand, FieldUser, FieldWaits}
}

// ofSlices reports whether the slices of one job may differ in a field.
func (f Field) ofSlices() bool { return f == FieldZone || f == FieldProvider || f == FieldType }

// values are all that a field can be, nil where that is open.
func (f Field) values() []string {
	var all []string
	switch f {
	case FieldState:
		for _, s := range jobStates() {
			all = append(all, string(s))
		}
	case FieldProvider:
		for _, p := range schema.ProviderNames() {
			all = append(all, string(p))
		}
	case FieldBand:
		all = []string{string(schema.BandProduction), string(schema.BandInteractive), string(schema.BandBatch)}
	case FieldWaits:
		for _, k := range plan.WaitKinds() {
			all = append(all, string(k))
		}
	case FieldName, FieldNamespace, FieldZone, FieldType, FieldUser, FieldReason:
	}
	return all
}

// Is is the condition that a field has one value.
func Is(f Field, value string) Term { return Term{Field: f, how: isOneOf, wants: []string{value}} }

// Value is the first value of a condition.
func (t *Term) Value() string { return t.wants[0] }

// jobStates are the statuses of jobs, in the order in which people look for them.
func jobStates() []schema.JobStatus {
	return []schema.JobStatus{schema.JobFailed, schema.JobPending, schema.JobRunning, schema.JobScheduled, schema.JobStopped, schema.JobSucceeded}
}

// comparison is a closed set.
type comparison string

// The comparisons.
const (
	isOneOf  comparison = "="
	isNoneOf comparison = "!="
	contains comparison = "~" // the text, in whichever case
)

// Term is one condition of a filter.
type Term struct {
	Field Field
	how   comparison
	wants []string
}

// holds reports whether a job with these values of the field meets the condition.
func (t *Term) holds(values []string) bool {
	if len(values) == 0 {
		values = []string{""}
	}
	some := slices.ContainsFunc(values, func(value string) bool {
		return slices.ContainsFunc(t.wants, func(want string) bool {
			if t.how == contains {
				return strings.Contains(strings.ToLower(value), strings.ToLower(want))
			}
			return value == want
		})
	})
	return some != (t.how == isNoneOf)
}

// Flags are what a user asks for.
type Flags struct {
	Filter      []string
	GroupBy     []string
	Page, Limit int
	HasLimit    bool // Limit was given
}

// Selection is which jobs are shown, grouped by what, and how many at once.
type Selection struct {
	Terms []Term // all of them hold
	By    []Field
	// Page counts from 1; 0: the first. Limit is how many rows it has, 0: all.
	Page, Limit int
	// Paged says that rows are asked for: they are not folded, however many there are.
	Paged bool
}

// Of reads flags.
func Of(f *Flags) (Selection, error) {
	s := Selection{Page: f.Page, Limit: DefaultRows, Paged: f.HasLimit || f.Page != 0}
	if f.HasLimit {
		s.Limit = f.Limit
	}
	if s.Limit < 0 {
		return s, fmt.Errorf("--limit: want a number of rows, or 0 for all, not %d", f.Limit)
	}
	if s.Page < 0 || s.Page > 1 && s.Limit == 0 {
		return s, fmt.Errorf("--page: want a page from 1 on, of --limit rows each, not %d", f.Page)
	}
	for _, text := range f.Filter {
		terms, err := parseFilter(text)
		if err != nil {
			return s, fmt.Errorf("--filter: %w", err)
		}
		s.Terms = append(s.Terms, terms...)
	}
	for _, name := range f.GroupBy {
		field := Field(strings.TrimSpace(name))
		if !slices.Contains(GroupFields(), field) {
			return s, fmt.Errorf("--group-by: %q is nothing to group by: want some of %s", name, joined(GroupFields()))
		}
		if !slices.Contains(s.By, field) {
			s.By = append(s.By, field)
		}
	}
	return s, nil
}

// parseFilter reads conditions that are separated by commas. A comma within quotes, as in
// name=job.train["a,b"], belongs to the value.
func parseFilter(text string) ([]Term, error) {
	var terms []Term
	quoted := false
	for _, part := range strings.FieldsFunc(text, func(r rune) bool {
		quoted = quoted != (r == '"')
		return r == ',' && !quoted
	}) {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	if len(terms) == 0 {
		return nil, fmt.Errorf("%q has no condition: %s", text, filterHelp())
	}
	return terms, nil
}

func parseTerm(text string) (Term, error) {
	at := strings.IndexAny(text, "=!~")
	if at < 0 {
		return Term{}, fmt.Errorf("%q compares nothing: %s", text, filterHelp())
	}
	t := Term{Field: Field(strings.TrimSpace(text[:at]))}
	rest := text[at:]
	for _, how := range []comparison{isNoneOf, isOneOf, contains} {
		if value, found := strings.CutPrefix(rest, string(how)); found {
			t.how, rest = how, value
			break
		}
	}
	if t.how == "" {
		return t, fmt.Errorf("%q compares nothing: %s", text, filterHelp())
	}
	if !slices.Contains(Fields(), t.Field) {
		return t, fmt.Errorf("%q is no field of a job: want one of %s", t.Field, joined(Fields()))
	}
	for want := range strings.SplitSeq(rest, "|") {
		t.wants = append(t.wants, strings.TrimSpace(want))
	}
	if all := t.Field.values(); all != nil && t.how != contains {
		for _, want := range t.wants {
			if want != "" && !slices.Contains(all, want) {
				return t, fmt.Errorf("%q is no %s: want one of %s", want, t.Field, strings.Join(all, ", "))
			}
		}
	}
	return t, nil
}

func filterHelp() string {
	return "want FIELD=VALUE, FIELD!=VALUE or FIELD~TEXT, separated by commas, with a field of " + joined(Fields())
}

func joined(fields []Field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// Part is the part of n rows that is shown, and how many come after it.
func (s *Selection) Part(n int) (from, to, more int) {
	if s.Limit == 0 {
		return 0, n, 0
	}
	from = min(n, (max(1, s.Page)-1)*s.Limit)
	to = min(n, from+s.Limit)
	return from, to, n - to
}

// Folds reports whether so many jobs are too many for a line each.
func (s *Selection) Folds(jobs int) bool {
	return len(s.By) > 0 || !s.Paged && s.Limit > 0 && jobs > s.Limit
}
