package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// planned is a made-up stack, one of whose jobs has a schedule, and one of whose namespaces a budget of money that is nearly used up.
func planned(now time.Time) (*Snapshot, string) {
	snap := makeUp(20, now)
	for i := range snap.Wanted.Namespaces {
		if n := &snap.Wanted.Namespaces[i]; n.Addr.Name == "rl" {
			n.Cost = schema.CostBudget{MaxPerMonth: 1000, WarnAt: 0.8, Action: schema.CostHold}
		}
	}
	for _, j := range snap.Doc.Jobs {
		if j.Spec.Addr.Name == "" || j.Status != schema.JobSucceeded {
			continue
		}
		j.Status = schema.JobScheduled
		j.Spec.Schedule = &schema.Schedule{Cron: "0 3 * * *", Timezone: "Europe/Zurich"}
		j.Scheduled = &state.ScheduledRuns{Due: now.Add(90 * time.Minute), Outcome: schema.JobFailed, Ended: 4}
		j.Scheduled.Run = 4
		return snap, j.ID
	}
	return snap, ""
}

// The next run of a job is in its answer, and what a namespace has spent is in that of the shares.
func TestSchedulesAndMoney(t *testing.T) {
	t.Parallel()
	snap, job := planned(testTime)
	s := pageOf(t, nil, func(c *Config) { c.Source = newSource(snap) })
	var detail JobDetail
	if got := ask(s, "/api/v1/jobs/"+job, nil); got.Code != http.StatusOK || json.Unmarshal(got.Body.Bytes(), &detail) != nil {
		t.Fatalf("got %d, %s", got.Code, got.Body)
	}
	want := ScheduleRow{Cron: "0 3 * * *", Timezone: "Europe/Zurich", Next: testTime.Add(90 * time.Minute), Run: 4, Ended: 4, Outcome: schema.JobFailed}
	if detail.Schedule == nil || *detail.Schedule != want {
		t.Errorf("the schedule is %+v, want %+v", detail.Schedule, want)
	}
	var list ShareList
	if got := ask(s, "/api/v1/shares", nil); got.Code != http.StatusOK || json.Unmarshal(got.Body.Bytes(), &list) != nil {
		t.Fatalf("got %d, %s", got.Code, got.Body)
	}
	if b := list.MoneyBudgets; len(b) != 1 || b[0].Limit != 1000 || !strings.HasPrefix(b[0].Text, "the cost budget of namespace.rl is $1,000.00 for ") {
		t.Errorf("the budgets of money are %+v, want one of $1,000", b)
	}
}

// TestSchedulesAndMoneyInABrowser: the page shows both.
func TestSchedulesAndMoneyInABrowser(t *testing.T) {
	snap, job := planned(time.Now())
	s, _ := live(t, snap, &memory{})
	b := openBrowser(t, s)
	b.open("#/jobs/" + job)
	b.await("the next run", `(() => { const text = document.body.innerText; return text.includes("0 3 * * * Europe/Zurich") && /in 1h 2?\d|in 1 ?h/.test(text) && text.includes("run 4 failed"); })()`)
	b.open("#/shares")
	b.await("the budget", `document.querySelector(".money")?.innerText.includes("the cost budget of namespace.rl is $1,000.00")`)
	for _, text := range b.said() {
		t.Errorf("the console says %s", text)
	}
}
