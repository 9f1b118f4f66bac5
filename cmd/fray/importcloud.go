package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What was made by other means than fray is named by its id at its provider,
// which has a slash in it, as no slice's name has. It is taken over in three
// steps, each of which may be the last of a process and be done again by the
// next: the state notes it as disowned, by which no plan deletes it; the provider
// marks it as the stack's; and then it is imported like any other slice.

// intake is one of what is to be taken over.
type intake struct {
	id       string
	wanted   schema.SliceSpec
	importer providers.Importer
	found    schema.SliceStatus
	project  string
}

func isForeign(id string) bool { return strings.Contains(id, "/") }

// taker looks up what is to be a stack's.
type taker struct {
	*loaded
	mark string // the stack's; that of a stack which has no state yet is only chosen
}

// takeIn looks up the ids among those of an import to an address. It returns the
// names of all slices, and changes nothing.
func (l taker) takeIn(ctx context.Context, addr schema.Address, ids []string) ([]intake, []string, error) {
	var in []intake
	names := make([]string, 0, len(ids))
	for i, id := range ids {
		if !isForeign(id) {
			names = append(names, id)
			continue
		}
		one, err := l.lookUp(ctx, addr, i, id)
		if err != nil {
			return nil, nil, err
		}
		in, names = append(in, one), append(names, one.found.Spec.Name)
	}
	return in, names, nil
}

func (l taker) lookUp(ctx context.Context, addr schema.Address, index int, id string) (intake, error) {
	wanted, ok := l.sliceOf(addr, index)
	if !ok {
		return intake{}, fmt.Errorf("%s is not declared; write it down first, with the shape that %s has", addr, id)
	}
	all, err := l.stack.providers(ctx, l.desired.Providers, l.doc)
	if err != nil {
		return intake{}, err
	}
	importer, ok := providers.AsImporter(all[wanted.Provider])
	if !ok {
		return intake{}, fmt.Errorf("%s is on the provider %s, which has no ids: name a slice, as fray status shows it", addr, wanted.Provider)
	}
	found, err := importer.Find(ctx, id, wanted)
	one := intake{id: id, wanted: wanted, importer: importer, found: found}
	for i := range l.desired.Providers {
		if l.desired.Providers[i].Name == wanted.Provider {
			one.project = l.desired.Providers[i].Project
		}
	}
	return one, err
}

// sliceOf is what is declared of a slice: a job's own, or of the reservation
// that it draws from.
func (l taker) sliceOf(addr schema.Address, index int) (schema.SliceSpec, bool) {
	for i := range l.desired.Jobs {
		job := &l.desired.Jobs[i]
		if job.Addr != addr {
			continue
		}
		if pool := job.Resources.Reservation; pool != "" {
			return l.sliceOf(schema.ScopedAddress(schema.KindReservation, pool), index)
		}
		return plan.OwnSlice(l.mark, job, index), true
	}
	for i := range l.desired.Reservations {
		if l.desired.Reservations[i].Addr == addr {
			return plan.PoolSlice(l.mark, &l.desired.Reservations[i], index), true
		}
	}
	return schema.SliceSpec{}, false
}

// upTake is an import by hand.
type upTake struct {
	addr   schema.Address
	in     []intake
	slices []string
}

// takeUp imports slices under the lease, those that are not fray's in the order
// in which it may be cut short.
func (l *loaded) takeUp(ctx context.Context, w apply.Rewriter, up upTake, say io.Writer) error {
	if len(up.in) > 0 {
		if _, err := w.Edit(ctx, func(doc *state.Document) (*state.Document, error) { return leftAlone(doc, up.in), nil }); err != nil {
			return err
		}
		if err := mark(ctx, up.in, say); err != nil {
			return err
		}
	}
	obs, err := l.observe(ctx, l.doc.Stack())
	if err != nil {
		return err
	}
	_, err = w.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
		return amend.Import(doc, amend.ImportInput{Addr: up.addr, Desired: &l.desired, Slices: up.slices, Observed: obs, At: time.Now().UTC()})
	})
	return err
}

// unmarked are those of them that an inventory does not list yet.
func unmarked(in []intake, obs *plan.Observed) []intake {
	return slices.DeleteFunc(slices.Clone(in), func(one intake) bool {
		return slices.ContainsFunc(obs.Inventories[one.wanted.Provider].Slices, func(s schema.SliceStatus) bool {
			return s.Spec.Name == one.found.Spec.Name && s.Spec.Zone == one.found.Spec.Zone
		})
	})
}

// asMarked shows them as they will be listed once they are marked.
func asMarked(in []intake, obs *plan.Observed) {
	for _, one := range unmarked(in, obs) {
		inventory := obs.Inventories[one.wanted.Provider]
		inventory.Slices = append(slices.Clone(inventory.Slices), one.found)
		slices.SortFunc(inventory.Slices, func(a, b schema.SliceStatus) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
		obs.Inventories[one.wanted.Provider] = inventory
	}
}

// leftAlone is a state by which no plan touches what is about to be marked; doc
// itself if it is one.
func leftAlone(doc *state.Document, in []intake) *state.Document {
	next := doc
	for _, one := range in {
		name := one.found.Spec.Name
		if _, disowned := doc.Disowned[name]; disowned || doc.Slices[name] != nil {
			continue
		}
		if next == doc {
			next = doc.Clone()
			next.Disowned = maps.Clone(doc.Disowned)
		}
		if next.Disowned == nil {
			next.Disowned = map[string]state.Disowned{}
		}
		next.Disowned[name] = state.Disowned{Spec: one.found.Spec, At: time.Now().UTC(), By: userAtHost()}
	}
	return next
}

// mark makes them the stack's, and says what is left to be done by hand.
func mark(ctx context.Context, in []intake, say io.Writer) error {
	for _, one := range in {
		spec, err := one.importer.Import(ctx, one.id, one.wanted)
		if err != nil {
			return err
		}
		fmt.Fprintf(say, "Marked %s as this stack's. fray's agent comes up on it once its startup script has run (do not stop it: what is stopped counts as lost):\n\n  %s\n\n",
			spec.Name, gcp.StartCommand(one.project, spec))
	}
	return nil
}

// lookUp finds what the open import blocks name by ids, and is the blocks with
// the names of slices in place of these.
func (m *amender) lookUp(ctx context.Context, doc *state.Document) (amend.Blocks, []intake, hcl.Diagnostics) {
	var in []intake
	var diags hcl.Diagnostics
	config := *m.blocks.Config
	config.Imports = slices.Clone(config.Imports)
	for _, im := range m.blocks.Imports(doc) {
		ids := strings.FieldsFunc(im.ID, func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.ContainsFunc(ids, isForeign) {
			continue
		}
		more, names, err := taker{m.l, doc.Stack()}.takeIn(ctx, im.To, ids)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot be imported", Detail: sentence(err), Subject: &im.Range})
			continue
		}
		in = append(in, more...)
		i := slices.IndexFunc(config.Imports, func(each schema.Import) bool { return each.To == im.To && each.Range == im.Range })
		config.Imports[i].ID = strings.Join(names, ",")
	}
	blocks := m.blocks
	blocks.Config = &config
	return blocks, in, diags
}

// takeOver marks what import blocks name by ids, once save has noted it in the
// state, and returns that state. What is wrong with the blocks is told by amend.
func (m *amender) takeOver(ctx context.Context, doc *state.Document, save func(context.Context, *state.Document) error) (*state.Document, error) {
	if m == nil || !slices.ContainsFunc(m.l.cfg.Imports, func(im schema.Import) bool { return isForeign(im.ID) }) {
		return doc, nil
	}
	next, _, diags := m.blocks.Relocate(doc)
	if diags.HasErrors() {
		return doc, nil
	}
	_, in, diags := m.lookUp(ctx, next)
	if diags.HasErrors() || len(in) == 0 {
		return doc, nil
	}
	obs, err := m.l.observe(ctx, doc.Stack())
	if err != nil {
		return nil, err
	}
	if in = unmarked(in, obs); len(in) == 0 {
		return doc, nil
	}
	if noted := leftAlone(doc, in); noted != doc {
		if err := save(ctx, noted); err != nil {
			return nil, err
		}
		doc = noted
	}
	return doc, mark(ctx, in, m.app.stderr)
}
