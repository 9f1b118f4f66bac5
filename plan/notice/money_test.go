package notice_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// The use of a budget of money is that of its month, with what has gone on since it was metered.
func TestMoneyUses(t *testing.T) {
	at := time.Date(2026, 11, 10, 12, 0, 0, 0, time.UTC)
	rl := schema.Address{Kind: schema.KindNamespace, Name: "rl"}
	doc := &state.Document{}
	doc.Desired.Namespaces = []schema.Namespace{{Addr: rl, Cost: schema.CostBudget{MaxPerMonth: 1000}}, {Addr: schema.Address{Kind: schema.KindNamespace, Name: "free"}}}
	doc.Metering = &state.Metering{At: at, Month: "2026-11", Spent: map[string]state.MonthSpend{
		"rl": {Used: state.Dollars{Low: 100, High: 400}, PerHour: state.Dollars{Low: 10, High: 20}},
	}}
	for after, want := range map[time.Duration]string{
		0:                   "[{rl USD 2026-11 400 1000}]",
		2 * time.Hour:       "[{rl USD 2026-11 440 1000}]",
		21 * 24 * time.Hour: "[{rl USD 2026-12 240 1000}]", // 12 hours of the next month
	} {
		if got := fmt.Sprint(notice.MoneyUses(doc, at.Add(after))); got != want {
			t.Errorf("%s later: got %s, want %s", after, got, want)
		}
	}
}
