package proposal

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
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// What was made by other means than fray is named by its id at its provider,
// which has a slash in it, as no slice's name has. It is taken over in three
// steps, each of which may be the last of a process and be done again by the
// next: the state records it as unmanaged, so that no plan deletes it; the provider
// marks it as the stack's; and then it is imported like any other slice.

// Found is one of what is to be taken over.
type Found struct {
	id       string
	wanted   schema.SliceSpec
	importer providers.Importer
	found    schema.SliceStatus
	project  string
}

func isForeign(id string) bool { return strings.Contains(id, "/") }

// Importer finds what is to be a stack's.
type Importer struct {
	*configuration.Loaded
	Mark string // the stack's; that of a stack which has no state yet is only chosen
}

// FindAll finds the ids among those of an import to an address. It returns the
// names of all slices, and changes nothing.
func (l Importer) FindAll(ctx context.Context, addr schema.Address, ids []string) ([]Found, []string, error) {
	var in []Found
	names := make([]string, 0, len(ids))
	for i, id := range ids {
		if !isForeign(id) {
			names = append(names, id)
			continue
		}
		one, err := l.find(ctx, addr, i, id)
		if err != nil {
			return nil, nil, err
		}
		in, names = append(in, one), append(names, one.found.Spec.Name)
	}
	return in, names, nil
}

func (l Importer) find(ctx context.Context, addr schema.Address, index int, id string) (Found, error) {
	wanted, ok := l.sliceOf(addr, index)
	if !ok {
		return Found{}, fmt.Errorf("%s is not declared; write it down first, with the shape that %s has", addr, id)
	}
	all, err := l.Stack.Providers(ctx, l.Desired.Providers, l.Document)
	if err != nil {
		return Found{}, err
	}
	importer, ok := providers.AsImporter(all[wanted.Provider])
	if !ok {
		return Found{}, fmt.Errorf("%s is on the provider %s, which has no ids: name a slice, as fray status shows it", addr, wanted.Provider)
	}
	found, err := importer.Find(ctx, id, wanted)
	one := Found{id: id, wanted: wanted, importer: importer, found: found}
	for i := range l.Desired.Providers {
		if l.Desired.Providers[i].Name == wanted.Provider {
			one.project = l.Desired.Providers[i].Project
		}
	}
	return one, err
}

// sliceOf is what is declared of a slice: a job's own, or of the reservation
// that it draws from.
func (l Importer) sliceOf(addr schema.Address, index int) (schema.SliceSpec, bool) {
	for i := range l.Desired.Jobs {
		job := &l.Desired.Jobs[i]
		if job.Addr != addr {
			continue
		}
		if pool := job.Resources.Reservation; pool != "" {
			return l.sliceOf(schema.ScopedAddress(schema.KindReservation, pool), index)
		}
		return plan.OwnSlice(l.Mark, job, index), true
	}
	for i := range l.Desired.Reservations {
		if l.Desired.Reservations[i].Addr == addr {
			return plan.PoolSlice(l.Mark, &l.Desired.Reservations[i], index), true
		}
	}
	return schema.SliceSpec{}, false
}

// Import is an import by hand.
type Import struct {
	Addr   schema.Address
	In     []Found
	Slices []string
}

// CarryOut imports slices under the lease, those that are not fray's in the order
// in which it may be cut short.
func CarryOut(ctx context.Context, l *configuration.Loaded, w apply.Rewriter, up Import, out io.Writer) error {
	if len(up.In) > 0 {
		if _, err := w.Edit(ctx, func(doc *state.Document) (*state.Document, error) { return leftAlone(doc, up.In), nil }); err != nil {
			return err
		}
		if err := mark(ctx, up.In, out); err != nil {
			return err
		}
	}
	obs, err := l.Observe(ctx, l.Document.Stack())
	if err != nil {
		return err
	}
	_, err = w.Edit(ctx, func(doc *state.Document) (*state.Document, error) {
		return amend.Import(doc, amend.ImportInput{Addr: up.Addr, Desired: &l.Desired, Slices: up.Slices, Observed: obs, At: time.Now().UTC()})
	})
	return err
}

// unmarked are those of them that an inventory does not list yet.
func unmarked(in []Found, obs *plan.Observed) []Found {
	return slices.DeleteFunc(slices.Clone(in), func(one Found) bool {
		return slices.ContainsFunc(obs.Inventories[one.wanted.Provider].Slices, func(s schema.SliceStatus) bool {
			return s.Spec.Name == one.found.Spec.Name && s.Spec.Zone == one.found.Spec.Zone
		})
	})
}

// asMarked shows them as they will be listed once they are marked.
func asMarked(in []Found, obs *plan.Observed) {
	for _, one := range unmarked(in, obs) {
		inventory := obs.Inventories[one.wanted.Provider]
		inventory.Slices = append(slices.Clone(inventory.Slices), one.found)
		slices.SortFunc(inventory.Slices, func(a, b schema.SliceStatus) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
		obs.Inventories[one.wanted.Provider] = inventory
	}
}

// leftAlone is a state by which no plan touches what is about to be marked; doc
// itself if it is one.
func leftAlone(doc *state.Document, in []Found) *state.Document {
	next := doc
	for _, one := range in {
		name := one.found.Spec.Name
		if _, unmanaged := doc.Unmanaged[name]; unmanaged || doc.Slices[name] != nil {
			continue
		}
		if next == doc {
			next = doc.Clone()
			next.Unmanaged = maps.Clone(doc.Unmanaged)
		}
		if next.Unmanaged == nil {
			next.Unmanaged = map[string]state.Unmanaged{}
		}
		next.Unmanaged[name] = state.Unmanaged{Spec: one.found.Spec, At: time.Now().UTC(), By: stack.UserAtHost()}
	}
	return next
}

// mark makes them the stack's, and reports what is left to be done by hand.
func mark(ctx context.Context, in []Found, out io.Writer) error {
	for _, one := range in {
		spec, err := one.importer.Import(ctx, one.id, one.wanted)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "Marked %s as this stack's. fray's agent comes up on it once its startup script has run (do not stop it: what is stopped counts as lost):\n\n  %s\n\n",
			spec.Name, gcp.StartCommand(one.project, spec))
	}
	return nil
}

// resolve finds what the open import blocks name by ids, and is the blocks with
// the names of slices in place of these.
func (m *Amender) resolve(ctx context.Context, doc *state.Document) (amend.Blocks, []Found, hcl.Diagnostics) {
	var in []Found
	var diags hcl.Diagnostics
	config := *m.blocks.Config
	config.Imports = slices.Clone(config.Imports)
	for _, im := range m.blocks.Imports(doc) {
		ids := strings.FieldsFunc(im.ID, func(r rune) bool { return r == ',' || r == ' ' })
		if !slices.ContainsFunc(ids, isForeign) {
			continue
		}
		more, names, err := Importer{Loaded: m.loaded, Mark: doc.Stack()}.FindAll(ctx, im.To, ids)
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Cannot be imported", Detail: configuration.DetailOf(err), Subject: &im.Range})
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

// MarkImports marks what import blocks name by ids, once save has noted it in the
// state, and returns that state. What is wrong with the blocks is reported by amend.
func (m *Amender) MarkImports(ctx context.Context, doc *state.Document, save func(context.Context, *state.Document) error) (*state.Document, error) {
	if m == nil || !slices.ContainsFunc(m.loaded.Config.Imports, func(im schema.Import) bool { return isForeign(im.ID) }) {
		return doc, nil
	}
	next, _, diags := m.blocks.Relocate(doc)
	if diags.HasErrors() {
		return doc, nil
	}
	_, in, diags := m.resolve(ctx, next)
	if diags.HasErrors() || len(in) == 0 {
		return doc, nil
	}
	obs, err := m.loaded.Observe(ctx, doc.Stack())
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
	return doc, mark(ctx, in, m.terminal.Stderr)
}
