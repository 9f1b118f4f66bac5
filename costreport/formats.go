package costreport

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
)

// JSONVersion is the version of the JSON that --json prints; members are only added.
const JSONVersion = 1

// document is what --json prints.
type document struct {
	Version  int                `json:"version"`
	Since    time.Time          `json:"since"`
	Until    time.Time          `json:"until"`
	Currency string             `json:"currency"`
	Prices   string             `json:"prices"`
	GroupBy  []string           `json:"group_by"`
	Rows     []row              `json:"rows"`
	Total    sums               `json:"total"`
	Budgets  []plan.MoneyBudget `json:"budgets"`
	// StoreRequests are in no row, and not in Total; null where none are recorded.
	StoreRequests *storeRequests `json:"store_requests"`
}

type row struct {
	Group map[string]string `json:"group"`
	sums
}

// sums are hours and dollars.
type sums struct {
	Chips     float64            `json:"chip_hours"`
	GPUs      float64            `json:"gpu_hours"`
	Cores     float64            `json:"core_hours"`
	Slices    float64            `json:"slice_hours"`
	Hosts     float64            `json:"host_hours"`
	Cost      state.Dollars      `json:"cost"`
	Unpriced  float64            `json:"unpriced_slice_hours"`
	Free      float64            `json:"free_slice_hours"`
	Estimated float64            `json:"estimated_slice_hours"`
	Useful    *useful            `json:"goodput"`
	Uses      map[string]float64 `json:"host_hours_by_use"`
	Lost      float64            `json:"lost_host_hours"`
}

type useful struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func sumsOf(s *accounting.Sum) sums {
	out := sums{
		Chips: rounded(s.Chips), GPUs: rounded(s.GPUs), Cores: rounded(s.Cores), Slices: rounded(s.Slices), Hosts: rounded(s.Hosts),
		Cost: state.Dollars{Low: rounded(s.Cost.Low), High: rounded(s.Cost.High)}, Unpriced: rounded(s.Unpriced), Free: rounded(s.Free),
		Estimated: rounded(s.Estimated), Uses: map[string]float64{}, Lost: rounded(s.Lost),
	}
	if low, high, known := s.Useful(); known {
		out.Useful = &useful{Low: rounded(low), High: rounded(high)}
	}
	for _, use := range state.SliceUses() {
		out.Uses[string(use)] = rounded(s.Uses[use])
	}
	return out
}

func rounded(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func (r *report) json(w io.Writer) error {
	d := document{
		Version: JSONVersion, Since: r.Query.Since, Until: r.Query.Until, Currency: "USD", Prices: accelerators.PricesFrom,
		GroupBy: []string{}, Rows: []row{}, Total: sumsOf(&r.total), Budgets: append([]plan.MoneyBudget{}, r.budgets...),
	}
	for _, by := range r.Query.By {
		d.GroupBy = append(d.GroupBy, string(by))
	}
	d.StoreRequests = r.storeRequests()
	for i := range r.rows {
		out := row{Group: map[string]string{}, sums: sumsOf(&r.rows[i].Sum)}
		for n, by := range r.Query.By {
			out.Group[string(by)] = r.rows[i].Values[n]
		}
		d.Rows = append(d.Rows, out)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

// csv prints a line of names, and a line for each row; there is no sum of all.
func (r *report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	var head []string
	for _, by := range r.Query.By {
		head = append(head, string(by))
	}
	head = append(head, "chip_hours", "gpu_hours", "core_hours", "slice_hours", "host_hours", "cost_low", "cost_high",
		"unpriced_slice_hours", "free_slice_hours", "estimated_slice_hours", "goodput_low", "goodput_high",
		"store_class_a", "store_class_b")
	lines := [][]string{head}
	for i := range r.rows {
		s := sumsOf(&r.rows[i].Sum)
		var line []string
		for _, value := range r.rows[i].Values {
			line = append(line, cell(value))
		}
		for _, x := range []float64{s.Chips, s.GPUs, s.Cores, s.Slices, s.Hosts, s.Cost.Low, s.Cost.High, s.Unpriced, s.Free, s.Estimated} {
			line = append(line, strconv.FormatFloat(x, 'f', -1, 64))
		}
		if s.Useful == nil {
			line = append(line, "", "")
		} else {
			line = append(line, strconv.FormatFloat(s.Useful.Low, 'f', -1, 64), strconv.FormatFloat(s.Useful.High, 'f', -1, 64))
		}
		lines = append(lines, append(line, "0", "0"))
	}
	for _, q := range r.requestRows() {
		lines = append(lines, q.csv())
	}
	return out.WriteAll(lines)
}

// cell is a value that a spreadsheet takes for text: one that begins like a formula gets an
// apostrophe before it.
func cell(value string) string {
	if value != "" {
		switch value[0] {
		case '=', '+', '-', '@', '\t', '\r':
			return "'" + value
		}
	}
	return value
}
