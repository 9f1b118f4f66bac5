package markdown_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/markdown"
	"github.com/fray-ml/fray/schema"
)

// A plan states what its targets leave out, also where it changes nothing, and has sections of schedules and of budgets.
func TestNarrowedPlanWithSchedulesAndBudgets(t *testing.T) {
	job := schema.Address{Kind: schema.KindJob, Name: "train"}
	pl := &plan.Plan{Targets: []schema.Address{job}}
	const narrowed = "only job.train, and what they need; the rest of the configuration was not looked at"
	if got := markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{}); !strings.Contains(got, narrowed) {
		t.Errorf("without changes: got %s", got)
	}
	pl.Changes = []plan.Change{{Addr: job, Verb: plan.VerbCreate}}
	pl.Schedules = []plan.ScheduledRuns{{Addr: job, Changed: true, Next: []time.Time{time.Date(2026, 11, 27, 3, 0, 0, 0, time.UTC)}}}
	pl.MoneyBudgets = []plan.MoneyBudget{{Namespace: schema.Address{Kind: schema.KindNamespace, Name: "lab"}, Limit: 100, Month: "2026-11"}}
	got := markdown.Render(markdown.Input{Plan: pl}, markdown.Limit{})
	for _, want := range []string{narrowed, "Scheduled runs", "job.train: Fri 2026-11-27 03:00", "Budgets of money", "the cost budget of namespace.lab is"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
}
