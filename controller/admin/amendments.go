package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Amendments are what the moved and removed blocks of a configuration ask of the
// state, and what the user who approved it was shown of that.
type Amendments struct {
	Moves    []schema.Move    `json:"moves,omitempty"`
	Removals []schema.Removal `json:"removals,omitempty"`
	Approved []plan.Amendment `json:"approved,omitempty"`
}

// Encode is the form in which an ApplyRequest carries it, nil for nothing.
func (a Amendments) Encode() ([]byte, error) {
	if len(a.Approved) == 0 {
		return nil, nil
	}
	a.Moves, a.Removals = slices.Clone(a.Moves), slices.Clone(a.Removals)
	for i := range a.Moves {
		a.Moves[i].Range = hcl.Range{}
	}
	for i := range a.Removals {
		a.Removals[i].Range = hcl.Range{}
	}
	data, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode amendments: %w", err)
	}
	return data, nil
}

// Same reports whether amendments are those that were approved.
func (a *Amendments) Same(found []plan.Amendment) bool {
	return slices.EqualFunc(found, a.Approved, func(x, y plan.Amendment) bool {
		return x.Verb == y.Verb && x.Addr == y.Addr && x.From == y.From && slices.Equal(x.Slices, y.Slices)
	})
}

// amend returns doc as the blocks change it, if that is what was approved.
func (in *accepted) amend(doc *state.Document, by string, now time.Time) (*state.Document, error) {
	if in.amendments == nil {
		return doc, nil
	}
	blocks := amend.Blocks{
		Config: &schema.Config{Moves: in.amendments.Moves, Removals: in.amendments.Removals, Desired: in.Desired}, At: now.UTC(), By: by,
	}
	next, found, diags := blocks.Relocate(doc)
	if diags.HasErrors() {
		return nil, status.Error(codes.FailedPrecondition, errors.Join(diags.Errs()...).Error())
	}
	if !in.amendments.Same(found) {
		return nil, status.Error(codes.Aborted, "the objects to move or to release have changed since; nothing was done: run it again")
	}
	return next, nil
}
