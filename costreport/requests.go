package costreport

import (
	"fmt"
	"math"
	"strconv"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/state"
)

// requestsName is what the row of the requests to the store is called.
const requestsName = "store requests"

// requestRow is the requests to the store, of a day if rows are of days.
type requestRow struct {
	values []string // of the dimensions
	sum    state.StoreRequests
}

// requestRows are a row of all days together, or one of each.
func (r *report) requestRows() []requestRow {
	var rows []requestRow
	day, name := -1, -1
	for i, by := range r.Query.By {
		switch {
		case by == accounting.ByDay:
			day = i
		case name < 0:
			name = i
		}
	}
	for i := range r.requests {
		d := &r.requests[i]
		asked := d.Leader.Plus(d.Hosts)
		if day < 0 && len(rows) > 0 {
			rows[0].sum = rows[0].sum.Plus(asked)
			continue
		}
		row := requestRow{values: make([]string, len(r.Query.By)), sum: asked}
		if day >= 0 {
			row.values[day] = d.Day
		}
		switch {
		case name >= 0:
			row.values[name] = requestsName
		case day >= 0:
			row.values[day] += ", " + requestsName
		}
		rows = append(rows, row)
	}
	return rows
}

// csv is the row's line; a reader knows it by its last numbers.
func (q *requestRow) csv() []string {
	var line []string
	for _, value := range q.values {
		line = append(line, cell(value))
	}
	cost := accounting.RequestCost(q.sum)
	line = append(line, "0", "0", "0", "0", "0", number6(cost.Low), number6(cost.High), "0", "0", "0", "", "")
	return append(line, strconv.FormatUint(q.sum.Writes+q.sum.Lists, 10), strconv.FormatUint(q.sum.Reads, 10))
}

func number6(x float64) string { return strconv.FormatFloat(rounded(x), 'f', -1, 64) }

// all is the total with the requests to the store.
func (r *report) all() *accounting.Sum {
	sum := r.total
	sum.Cost = sum.Cost.Plus(accounting.RequestCost(r.asked()))
	return &sum
}

func (r *report) asked() (sum state.StoreRequests) {
	for i := range r.requests {
		sum = sum.Plus(r.requests[i].Leader).Plus(r.requests[i].Hosts)
	}
	return sum
}

// cents is a price that may be below a cent.
func cents(d state.Dollars) string {
	if d.High < 0.01 {
		return fmt.Sprintf("$%.4f–$%.4f", d.Low, math.Max(d.High, 0))
	}
	return render.Price(accelerators.Price(d))
}

// requestNotes say what the store was asked for.
func (r *report) requestNotes() string {
	if len(r.requests) == 0 {
		return ""
	}
	sum := r.asked()
	return fmt.Sprintf("Store requests: %d of class A (%d writes, %d lists) and %d reads of class B, by the process that leads and the hosts; of whole days, at list prices of a region and of several.\n",
		sum.Writes+sum.Lists, sum.Writes, sum.Lists, sum.Reads)
}

// storeRequests are the requests to the store as --json prints them.
type storeRequests struct {
	state.StoreRequests
	Cost state.Dollars     `json:"cost"`
	Days []storeRequestDay `json:"days"`
}

type storeRequestDay struct {
	state.StoreRequestDay
	Cost state.Dollars `json:"cost"`
}

func (r *report) storeRequests() *storeRequests {
	if len(r.requests) == 0 {
		return nil
	}
	out := &storeRequests{StoreRequests: r.asked()}
	out.Cost = roundedDollars(accounting.RequestCost(out.StoreRequests))
	for _, d := range r.requests {
		out.Days = append(out.Days, storeRequestDay{d, roundedDollars(accounting.RequestCost(d.Leader.Plus(d.Hosts)))})
	}
	return out
}

func roundedDollars(d state.Dollars) state.Dollars {
	return state.Dollars{Low: rounded(d.Low), High: rounded(d.High)}
}
