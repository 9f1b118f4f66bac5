package web

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

// ShareRow is what one namespace has, and what it may have.
type ShareRow struct {
	Namespace string  `json:"namespace"`
	Weight    float64 `json:"weight"`
	Chips     int     `json:"chips"` // of slices that its jobs hold
	CPU       float64 `json:"cpu"`   // cores of slices without TPUs
	MaxChips  int     `json:"max_chips,omitempty"`
	MaxCPU    float64 `json:"max_cpu,omitempty"`
	Budget    int     `json:"budget,omitempty"`
	Running   int     `json:"running"` // jobs
	Waiting   int     `json:"waiting"`
	// Share is its part of what is held, by the resource of which it has most
	// (dominant share), Entitled its weight among those that hold or wait for any.
	Share    float64   `json:"share"`
	Entitled float64   `json:"entitled"`
	Users    []UserRow `json:"users,omitempty"`
}

// UserRow is one user's part in a namespace.
type UserRow struct {
	Name     string  `json:"name"`
	Weight   float64 `json:"weight"`
	Chips    int     `json:"chips"`
	CPU      float64 `json:"cpu"`
	MaxChips int     `json:"max_chips,omitempty"`
	Budget   int     `json:"budget,omitempty"`
	Running  int     `json:"running"`
	Waiting  int     `json:"waiting"`
}

// ShareList is the answer of /api/v1/shares.
type ShareList struct {
	Version uint64     `json:"version"`
	Chips   int        `json:"chips"` // held by all
	CPU     float64    `json:"cpu"`
	Shares  []ShareRow `json:"shares"` // by namespace
	// MoneyBudgets are how the cost blocks of namespaces stand this month, each in words too.
	MoneyBudgets []MoneyRow `json:"money_budgets,omitempty"`
}

// MoneyRow is how the cost block of a namespace stands.
type MoneyRow struct {
	plan.MoneyBudget
	Text string `json:"text"`
}

// moneyRows are those of all namespaces that have a cost block.
func moneyRows(snap *Snapshot, now time.Time) []MoneyRow {
	var rows []MoneyRow
	for _, b := range accounting.Budgets(wantedOf(snap), snap.Doc.Metering, now) {
		rows = append(rows, MoneyRow{MoneyBudget: b, Text: render.MoneyBudget(&b)})
	}
	return rows
}

func (s *Server) shares(w http.ResponseWriter, _ *http.Request) {
	f := s.current.Load()
	list := shareList(f.snap, f.look(), f.version)
	list.MoneyBudgets = moneyRows(f.snap, s.cfg.Now())
	answer(w, http.StatusOK, list)
}

// Shares are what the namespaces of a snapshot have, by name.
func Shares(snap *Snapshot) []ShareRow { return shareList(snap, newFrame(snap, 1).look(), 1).Shares }

// shareList sums up what namespaces hold. It is for people: what the plan
// decides by, it works out itself.
func shareList(snap *Snapshot, x *index, version uint64) ShareList {
	t := tally{rows: map[string]*ShareRow{}, users: map[string]map[string]*UserRow{}}
	for i := range wantedOf(snap).Namespaces {
		t.declare(&wantedOf(snap).Namespaces[i])
	}
	for _, e := range x.jobs {
		if e.job.Status.Ended() || e.past || e.job.Spec == nil {
			continue
		}
		t.add(snap, e)
	}
	out := ShareList{Version: version, Shares: []ShareRow{}}
	weights := 0.0
	for _, row := range t.rows {
		out.Chips += row.Chips
		out.CPU += row.CPU
		if row.active() {
			weights += row.Weight
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.rows)) {
		row := *t.rows[name]
		row.Share = max(part(float64(row.Chips), float64(out.Chips)), part(row.CPU, out.CPU))
		if row.active() {
			row.Entitled = part(row.Weight, weights)
		}
		for _, u := range t.users[name] {
			row.Users = append(row.Users, *u)
		}
		slices.SortFunc(row.Users, func(a, b UserRow) int {
			return cmp.Or(b.Chips-a.Chips, strings.Compare(a.Name, b.Name))
		})
		out.Shares = append(out.Shares, row)
	}
	return out
}

func part(of, all float64) float64 {
	if all == 0 {
		return 0
	}
	return of / all
}

func (r *ShareRow) active() bool { return r.Running+r.Waiting > 0 }

// tally adds jobs to their namespaces and users.
type tally struct {
	rows  map[string]*ShareRow
	users map[string]map[string]*UserRow
}

func (t *tally) declare(n *schema.Namespace) {
	row := t.of(n.Addr.Scoped())
	row.Weight, row.MaxChips, row.MaxCPU, row.Budget = cmp.Or(n.Weight, 1), n.MaxChips, n.MaxCPU, n.Budget
	for i := range n.Users {
		u := &n.Users[i]
		*t.user(row.Namespace, u.Name) = UserRow{Name: u.Name, Weight: cmp.Or(u.Weight, 1), MaxChips: u.MaxChips, Budget: u.Budget}
	}
}

func (t *tally) of(namespace string) *ShareRow {
	row := t.rows[namespace]
	if row == nil {
		row = &ShareRow{Namespace: namespace, Weight: 1}
		t.rows[namespace] = row
	}
	return row
}

func (t *tally) user(namespace, name string) *UserRow {
	if t.users[namespace] == nil {
		t.users[namespace] = map[string]*UserRow{}
	}
	row := t.users[namespace][name]
	if row == nil {
		row = &UserRow{Name: name, Weight: 1}
		t.users[namespace][name] = row
	}
	return row
}

func (t *tally) add(snap *Snapshot, e *jobEntry) {
	row, user := t.of(e.row.Namespace), &UserRow{}
	if e.row.User != "" {
		user = t.user(e.row.Namespace, e.row.User)
	}
	if e.job.Status == schema.JobRunning {
		row.Running++
		user.Running++
	} else {
		row.Waiting++
		user.Waiting++
	}
	for _, name := range e.job.Slices {
		slice := snap.Doc.Slices[name]
		if slice == nil {
			continue
		}
		chips, cpu := accelerators.Chips(&slice.Spec), 0.0
		if slice.Spec.TPU == "" {
			cpu = slice.Spec.CPU * float64(max(1, slice.Spec.Hosts))
		}
		row.Chips, row.CPU = row.Chips+chips, row.CPU+cpu
		user.Chips, user.CPU = user.Chips+chips, user.CPU+cpu
	}
}
