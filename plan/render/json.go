package render

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// FormatVersion is the version of what JSON writes. The minor number rises with
// new fields, the major one with changed or removed fields.
const FormatVersion = "1.7"

// Meta is what a plan does not know about itself.
type Meta struct {
	FrayVersion string
	Workspace   string // "default", or the one that was chosen
	// Lineage, Serial and Revision are those of the state planned against.
	Lineage  string
	Serial   uint64
	Revision uint64
	// Applicable says that apply would carry this plan out, if it refuses nothing.
	Applicable bool
	Time       time.Time // of the plan
}

// head is the part of the document before its lists.
type head struct {
	FormatVersion string         `json:"format_version"`
	FrayVersion   string         `json:"fray_version"`
	Timestamp     string         `json:"timestamp"`
	Workspace     string         `json:"workspace"`
	Mode          plan.Mode      `json:"mode,omitempty"`
	Targets       []string       `json:"targets,omitempty"`
	Lineage       string         `json:"lineage"`
	Serial        uint64         `json:"serial"`
	Revision      uint64         `json:"revision"`
	Applicable    bool           `json:"applicable"`
	Empty         bool           `json:"empty"`
	Wake          string         `json:"wake,omitempty"`
	Counts        map[string]int `json:"counts"`
	Cost          *cost          `json:"cost,omitempty"`
}

// change is a plan.Change with its address taken apart.
type change struct {
	Address    schema.Address    `json:"address"`
	Kind       schema.Kind       `json:"kind"`
	Module     string            `json:"module,omitempty"`
	Group      string            `json:"group,omitempty"`
	Name       string            `json:"name"`
	Key        any               `json:"key,omitempty"` // a number or a string
	Action     plan.Verb         `json:"action"`
	Reason     string            `json:"reason,omitempty"`
	ActionWhy  plan.ActionReason `json:"action_reason,omitempty"`
	Attributes []plan.AttrChange `json:"attributes,omitempty"`
}

type action struct {
	Action  plan.ActionVerb `json:"action"`
	Address string          `json:"address,omitempty"`
	Slice   string          `json:"slice,omitempty"`
}

// JSON writes a plan for programs, as docs/plan-json.md describes it. Every
// element of its lists stands on a line of its own; nothing is folded.
func JSON(w io.Writer, pl *plan.Plan, meta Meta) error {
	j := &jsonWriter{w: bufio.NewWriterSize(w, 1<<16)}
	j.encoder = json.NewEncoder(&j.buf)
	j.encoder.SetEscapeHTML(false)
	if err := j.document(pl, meta); err != nil {
		return err
	}
	if err := j.w.Flush(); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// jsonWriter encodes one element at a time, so that a large plan needs no
// memory of its size.
type jsonWriter struct {
	w       *bufio.Writer
	buf     bytes.Buffer
	encoder *json.Encoder
}

func (j *jsonWriter) document(pl *plan.Plan, meta Meta) error {
	if err := j.head(pl, meta); err != nil {
		return fmt.Errorf("encode plan: %w", err)
	}
	changes := func(i int) any { return changeOf(&pl.Changes[i]) }
	if err := j.list("changes", len(pl.Changes), changes); err != nil {
		return err
	}
	if err := j.list("outputs", len(pl.Outputs), func(i int) any { return outputOf(&pl.Outputs[i]) }); err != nil {
		return err
	}
	if err := j.list("blocked", len(pl.Blocked), func(i int) any { return &pl.Blocked[i] }); err != nil {
		return err
	}
	if err := j.list("amendments", len(pl.Amendments), func(i int) any { return &pl.Amendments[i] }); err != nil {
		return err
	}
	if err := j.list("running", len(pl.Running), func(i int) any { return &pl.Running[i] }); err != nil {
		return err
	}
	if err := j.list("drift", len(pl.Drift), func(i int) any { return &pl.Drift[i] }); err != nil {
		return err
	}
	if err := j.list("pending", len(pl.Pending), func(i int) any { return &pl.Pending[i] }); err != nil {
		return err
	}
	if err := j.list("capacity", len(pl.Capacity), func(i int) any { return &pl.Capacity[i] }); err != nil {
		return err
	}
	if err := j.list("expiries", len(pl.Expiries), func(i int) any { return &pl.Expiries[i] }); err != nil {
		return err
	}
	if err := j.list("costs", len(pl.Costs), func(i int) any { return roundedCost(pl.Costs[i]) }); err != nil {
		return err
	}
	if err := j.list("policies", len(pl.Policies), func(i int) any { return &pl.Policies[i] }); err != nil {
		return err
	}
	if len(pl.MoneyBudgets) > 0 {
		if err := j.list("money_budgets", len(pl.MoneyBudgets), func(i int) any { return &pl.MoneyBudgets[i] }); err != nil {
			return err
		}
	}
	if err := j.list("schedules", len(pl.Schedules), func(i int) any { return &pl.Schedules[i] }); err != nil {
		return err
	}
	actions := func(i int) any {
		a := &pl.Actions[i]
		return action{Action: a.Verb, Address: a.Addr.String(), Slice: a.Slice.Name}
	}
	if err := j.list("actions", len(pl.Actions), actions); err != nil {
		return err
	}
	_, _ = j.w.WriteString("\n}\n")
	return nil
}

// head writes the document's opening, without its closing brace.
func (j *jsonWriter) head(pl *plan.Plan, meta Meta) error {
	counts := map[string]int{} // every verb is named
	changes, amendments := pl.Counts(), pl.Amended()
	for _, v := range append(shownVerbs(), plan.VerbNone) {
		counts[string(v)] = changes[v]
	}
	for _, v := range plan.AmendVerbs() {
		counts[string(v)] = amendments[v]
	}
	h := head{
		FormatVersion: FormatVersion, FrayVersion: meta.FrayVersion,
		Timestamp: meta.Time.UTC().Format(time.RFC3339Nano), Workspace: cmp.Or(meta.Workspace, schema.DefaultWorkspace), Mode: pl.Mode,
		Lineage: meta.Lineage, Serial: meta.Serial, Revision: meta.Revision,
		Applicable: meta.Applicable && len(pl.Blocked) == 0 && len(pl.DeniedBy()) == 0, Empty: pl.Empty(), Counts: counts,
	}
	for _, addr := range pl.Targets {
		h.Targets = append(h.Targets, addr.String())
	}
	if len(pl.Costs) > 0 {
		h.Cost = costOf(pl.Costs)
	}
	if !pl.Wake.IsZero() {
		h.Wake = pl.Wake.UTC().Format(time.RFC3339Nano)
	}
	data, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	_, _ = j.w.Write(bytes.TrimSuffix(data, []byte("\n}")))
	return nil
}

func (j *jsonWriter) list(name string, n int, at func(int) any) error {
	_, _ = j.w.WriteString(",\n  \"" + name + "\": [")
	for i := range n {
		j.buf.Reset()
		if err := j.encoder.Encode(at(i)); err != nil {
			return fmt.Errorf("encode plan: %s %d: %w", name, i, err)
		}
		if i > 0 {
			_ = j.w.WriteByte(',')
		}
		_, _ = j.w.WriteString("\n    ")
		_, _ = j.w.Write(bytes.TrimSuffix(j.buf.Bytes(), []byte("\n")))
	}
	if n > 0 {
		_, _ = j.w.WriteString("\n  ")
	}
	_ = j.w.WriteByte(']')
	return nil
}

func changeOf(c *plan.Change) change {
	out := change{
		Address: c.Addr, Kind: c.Addr.Kind, Module: c.Addr.Module, Group: c.Addr.Group, Name: c.Addr.Name,
		Action: c.Verb, Reason: c.Reason, ActionWhy: c.ActionReason, Attributes: redacted(c.Attrs),
	}
	if n, ok := c.Addr.Key.Int(); ok {
		out.Key = n
	} else if s, ok := c.Addr.Key.Str(); ok {
		out.Key = s
	}
	return out
}

// outputOf is an output's change without what must not be shown.
func outputOf(c *plan.OutputChange) plan.OutputChange {
	out := *c
	if out.Sensitive {
		out.Before, out.After = nil, nil
		return out
	}
	out.Before, out.After = withoutSealed(out.Before), withoutSealed(out.After)
	return out
}

// redacted is attrs without what must not be shown.
func redacted(attrs []*plan.AttrChange) []plan.AttrChange {
	out := make([]plan.AttrChange, len(attrs))
	for i := range attrs {
		out[i] = *attrs[i]
		if out[i].Sensitive {
			out[i].Before, out[i].After = nil, nil
			continue
		}
		out[i].Before, out[i].After = withoutSealed(out[i].Before), withoutSealed(out[i].After)
	}
	return out
}

// withoutSealed is a value with {"sensitive":true} in place of every sealed
// Text in it. Only values that may hold one are taken apart.
func withoutSealed(raw json.RawMessage) json.RawMessage {
	if !present(raw) {
		return nil
	}
	if !bytes.Contains(raw, []byte(`sealed"`)) && !bytes.Contains(raw, []byte(`\u`)) {
		return raw
	}
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) == nil {
		for i := range items {
			items[i] = orNull(withoutSealed(items[i]))
		}
		return encoded(items)
	}
	fields, ok := objectOf(raw)
	if !ok {
		return raw
	}
	if t, hidden := hiddenText(fields); hidden && t.IsSensitive() {
		return json.RawMessage(`{"sensitive":true}`)
	}
	for k := range fields {
		fields[k] = orNull(withoutSealed(fields[k]))
	}
	return encoded(fields)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// encoded is v as JSON; what cannot be encoded is not shown.
func encoded(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
