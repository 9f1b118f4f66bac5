package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/status/selection"
)

// Document is what status --json prints; fields are only ever added.
type Document struct {
	FormatVersion string       `json:"format_version"`
	Workspace     string       `json:"workspace"`
	Lineage       string       `json:"lineage"`
	Serial        uint64       `json:"serial"`
	Revision      uint64       `json:"revision"`
	Lease         *store.Lease `json:"lease,omitempty"` // only while it is held
	// SilentSince is the last sign of life, by its own clock, of who holds the lease
	// and does not answer; all else is then as the store has it.
	SilentSince time.Time    `json:"silent_since,omitzero"`
	Paused      *state.Pause `json:"paused,omitempty"`
	// Conditions are what is amiss with providers, by name.
	Conditions map[schema.ProviderName]state.ProviderCondition `json:"conditions,omitempty"`
	Jobs       []jobJSON                                       `json:"jobs"`
	Slices     []sliceJSON                                     `json:"slices"`
	// Reservations are absent where there are none.
	Reservations []capacity.PoolStatus `json:"reservations,omitempty"`
	Unmanaged    []unmanagedJSON       `json:"unmanaged,omitempty"`
	Pending      []plan.Pending        `json:"pending,omitempty"`
	Blocked      []plan.BlockedChange  `json:"blocked,omitempty"`
	Drift        []plan.Drift          `json:"drift,omitempty"`
	// Notices are receivers of notifications that cannot be told, and what was dropped.
	Notices []receiverJSON `json:"notices,omitempty"`
	// MoneyBudgets are how the cost blocks of namespaces stand.
	MoneyBudgets []plan.MoneyBudget `json:"money_budgets,omitempty"`
	// Page is which of the jobs are in Jobs, absent where all are.
	Page *pageJSON `json:"page,omitempty"`
	// GroupBy are the fields of the values of Groups; Jobs and Slices are then empty.
	GroupBy []selection.Field  `json:"group_by,omitempty"`
	Groups  []*selection.Group `json:"groups,omitempty"`
}

// pageJSON is which part of a list is there.
type pageJSON struct {
	Page  int `json:"page"` // from 1
	Limit int `json:"limit"`
	Total int `json:"total"` // jobs, or groups, that the filter leaves
	Next  int `json:"next,omitempty"`
}

func pageOf(s *selection.Selection, n int) (from, to int, page *pageJSON) {
	if !s.Paged || s.Limit == 0 {
		return 0, n, nil
	}
	from, to, more := s.Part(n)
	page = &pageJSON{Page: max(1, s.Page), Limit: s.Limit, Total: n}
	if more > 0 {
		page.Next = page.Page + 1
	}
	return from, to, page
}

type jobJSON struct {
	Address schema.Address   `json:"address"`
	ID      string           `json:"id"`
	Parent  string           `json:"parent,omitempty"` // id of the job that launched it
	Status  schema.JobStatus `json:"status"`
	Ready   bool             `json:"ready"`
	Reasons []string         `json:"reasons,omitempty"`
	// Choice is absent of a job without alternatives, and of one that was given no slices.
	Choice      *state.Choice `json:"choice,omitempty"`
	Failures    int           `json:"failures"`
	Preemptions int           `json:"preemptions"`
	UnknownEnds int           `json:"unknown_ends"`
	// Schedule is absent of a job without one.
	Schedule *scheduleJSON   `json:"schedule,omitempty"`
	Attempt  int             `json:"attempt"`
	Attempts []state.Attempt `json:"attempts"`
}

type sliceJSON struct {
	Name  string         `json:"name"`
	Owner schema.Address `json:"owner"`
	TPU   string         `json:"tpu,omitempty"`
	GPU   schema.GPU     `json:"gpu,omitzero"`
	Hosts int            `json:"hosts"`
	Error string         `json:"error,omitempty"`
	// IdleSince is since when no job has held it.
	IdleSince time.Time `json:"idle_since,omitzero"`
	// Terminating is why it is to be deleted, left out if it is to stay.
	Terminating state.Termination `json:"terminating,omitzero"`
	Chips       int               `json:"chips,omitempty"`
	// Held is absent while the job that it was made for runs or waits.
	Held *heldJSON `json:"held,omitempty"`
}

type unmanagedJSON struct {
	Name  string         `json:"name"`
	Owner schema.Address `json:"owner"`
	At    time.Time      `json:"at"`
	By    string         `json:"by"`
}

// Document is the view as status --json prints it.
func (v *View) Document() *Document {
	out := &Document{
		FormatVersion: "1.0", Workspace: cmp.Or(v.workspace, schema.DefaultWorkspace), Lineage: v.Doc.Lineage, Serial: v.Doc.Serial, Revision: v.Doc.Revision,
		Paused: v.Doc.Paused, Conditions: v.conditions(), Jobs: []jobJSON{}, Slices: []sliceJSON{}, Pending: v.plan.Pending, Blocked: v.plan.Blocked, Drift: v.plan.Drift,
		Notices:      v.receivers(),
		MoneyBudgets: moneyBudgets(v),
	}
	if v.led {
		out.Lease = &v.lease
	}
	if v.silent || v.unsure {
		out.SilentSince = v.lease.RenewedAt
	}
	if v.Select.By != nil {
		out.GroupBy, out.Groups = v.Select.By, groupsOf(v, v.Select.By)
		from, to, page := pageOf(&v.Select, len(out.Groups))
		out.Groups, out.Page, out.Pending = out.Groups[from:to], page, nil
		return out
	}
	out.listJobs(v)
	for _, r := range v.pools() {
		if v.shown(r.Addr) {
			out.Reservations = append(out.Reservations, r)
		}
	}
	for _, name := range stack.SortedKeys(v.Doc.Unmanaged) {
		d := v.Doc.Unmanaged[name]
		out.Unmanaged = append(out.Unmanaged, unmanagedJSON{Name: name, Owner: d.Spec.Owner, At: d.At, By: d.By})
	}
	return out
}

// listJobs adds the jobs of a page, and the slices and reasons of these.
func (out *Document) listJobs(v *View) {
	addrs := shownJobs(v)
	from, to, page := pageOf(&v.Select, len(addrs))
	out.Page, addrs = page, addrs[from:to]
	partial := page != nil || v.found.Filtered()
	listed, held := map[schema.Address]bool{}, map[string]bool{}
	for _, addr := range addrs {
		j := v.Doc.Jobs[addr]
		listed[addr] = true
		for _, name := range j.Slices {
			held[name] = true
		}
		reasons := v.pending[addr]
		if len(reasons) == 0 && j.Reason != "" {
			reasons = []string{j.Reason}
		}
		parent := ""
		if j.Launch != nil {
			parent = j.Launch.Parent
		}
		out.Jobs = append(out.Jobs, jobJSON{
			Address: addr, ID: j.ID, Parent: parent, Status: j.Status, Ready: j.Ready, Reasons: reasons, Choice: j.Chosen(), Schedule: v.scheduleOf(j),
			Failures: j.Failures, Preemptions: j.Preemptions, UnknownEnds: j.UnknownEnds, Attempt: j.Attempt, Attempts: j.Attempts,
		})
	}
	for _, name := range stack.SortedKeys(v.Doc.Slices) {
		s := v.Doc.Slices[name]
		if held[name] || listed[s.Spec.Owner] || !partial && v.shown(s.Spec.Owner) {
			out.Slices = append(out.Slices, sliceJSON{Name: name, Owner: s.Spec.Owner, TPU: s.Spec.TPU, GPU: s.Spec.GPU, Hosts: s.Spec.Hosts, Error: s.Error, IdleSince: s.IdleSince, Terminating: s.Terminating, Chips: accelerators.Chips(&s.Spec), Held: heldOf(v.Doc, s, v.acts())})
		}
	}
	if partial {
		out.Pending = slices.DeleteFunc(slices.Clone(out.Pending), func(p plan.Pending) bool { return !listed[p.Addr] })
	}
}
