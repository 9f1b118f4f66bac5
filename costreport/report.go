package costreport

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/apply/requestlog"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// report is what is printed.
type report struct {
	*Options
	rows    []accounting.Row
	total   accounting.Sum
	budgets []plan.MoneyBudget
	// requests are those to the store, by day: they are of no namespace.
	requests []state.StoreRequestDay
}

// Print prints what a stack has used, as its ledger and the document record it.
func Print(ctx context.Context, a *terminal.Terminal, s store.Store, doc *state.Document, o *Options) error {
	intervals, err := apply.ReadUsage(ctx, s, doc, o.Query.Since, o.Now)
	if err != nil {
		return err
	}
	r := &report{Options: o}
	r.rows, r.total = accounting.Summarize(intervals, &o.Query)
	if o.Query.Namespace == nil {
		log, err := requestlog.Read(ctx, s)
		if err != nil {
			return err
		}
		r.requests = accounting.RequestsOf(log, o.Query.Since, o.Query.Until)
	}
	if doc != nil {
		r.budgets = accounting.Budgets(&doc.Desired, doc.Metering, o.Now)
	}
	switch o.Format {
	case FormatCSV:
		return r.csv(a.Stdout)
	case FormatJSON:
		return r.json(a.Stdout)
	case FormatTable:
	}
	if len(r.rows) == 0 && len(r.requests) == 0 {
		_, err := fmt.Fprintf(a.Stdout, "Nothing was used from %s to %s, as far as it is recorded. Usage is recorded while fray apply or fray watch runs.\n",
			o.Query.Since.Format(shownTime), o.Query.Until.Format(shownTime))
		return err
	}
	return r.table(a.Stdout)
}
