package amend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Imports are the import blocks that are still to be carried out, in the order
// in which they are: the ones whose address the state does not have.
func (b *Blocks) Imports(doc *state.Document) []schema.Import {
	var open []schema.Import
	for _, im := range b.Config.Imports {
		_, job := doc.Jobs[im.To]
		_, resource := doc.Resources[im.To]
		if !job && !resource && b.wants(im.To) {
			open = append(open, im)
		}
	}
	// Reservations come first: they bring the jobs that run on them.
	slices.SortStableFunc(open, func(x, y schema.Import) int { return x.To.Compare(y.To) })
	return open
}

// TakeOver carries out the open import blocks. desired is what the files
// declare, prepared as it is to be recorded; obs the world as it was just seen.
func (b *Blocks) TakeOver(doc *state.Document, desired *schema.Desired, obs *plan.Observed) (*state.Document, []plan.Amendment, hcl.Diagnostics) {
	var done []plan.Amendment
	var diags hcl.Diagnostics
	next := doc
	for _, im := range b.Imports(doc) {
		if next.Jobs[im.To] != nil {
			continue // it has come with its reservation
		}
		after, err := Import(next, ImportInput{Addr: im.To, Desired: desired, Slices: slicesOf(&im), Observed: obs, At: b.At})
		if err != nil {
			diags = append(diags, &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Cannot be imported", Detail: sentence(err) + orphans(next, obs), Subject: &im.Range,
			})
			continue
		}
		for _, addr := range sortedAddrs(after.Jobs) {
			if next.Jobs[addr] == nil {
				done = append(done, plan.Amendment{Verb: plan.AmendImport, Addr: addr, Slices: after.Jobs[addr].Slices})
			}
		}
		if im.To.Kind == schema.KindReservation {
			done = append(done, plan.Amendment{Verb: plan.AmendImport, Addr: im.To, Slices: slicesOf(&im)})
		}
		next = after
	}
	if diags.HasErrors() {
		return doc, nil, diags
	}
	return next, inAddressOrder(done), nil
}

// mostNamed is how many slices a message names.
const mostNamed = 8

// orphans says which slices could be imported: those that live, bear the
// stack's mark and have no owner.
func orphans(doc *state.Document, obs *plan.Observed) string {
	all := listed(obs, doc.Stack())
	var names []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		st := all[name]
		if doc.Slices[name] != nil || st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting {
			continue
		}
		owner := st.Spec.Owner
		if given, ok := doc.Unmanaged[name]; ok {
			owner = given.Spec.Owner
		}
		names = append(names, fmt.Sprintf("%s (made for %s)", name, owner))
	}
	if n := len(names) - mostNamed; n > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", n))
	}
	if len(names) == 0 {
		return " There is no slice that could be imported: none bears this stack's mark and has no owner."
	}
	return " These slices could be imported: " + strings.Join(names, ", ") + "."
}
