package eval

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/schema"
)

// Options are what an evaluation takes from outside the files.
type Options struct {
	Given    []Given                            // values of variables from the command line, in order
	Environ  []string                           // FRAY_VAR_name=value are read from here
	Local    bool                               // map every provider, and the state, onto this machine
	Emulated bool                               // an emulator stands in for the cloud
	Computed map[schema.Address]schema.Computed // values known only after apply, as far as known
	Version  string                             // of the tool, checked against required_version; "" is not checked

	Workspace string      // fray.workspace; "" is DefaultWorkspace
	Data      Reader      // reads what data blocks name; nil: nothing is known of it
	Partial   bool        // variables without a value are unknown rather than an error
	Canceled  func() bool // nil: never; polled about once for each block; once true, the evaluation ends soon, with an error

	Expanded func(instances int) // nil: not called; how many instances all blocks have so far, for a block of many

	Moment funcs.Moment // of the plan, and of its apply once that is begun

	Assigned  map[string]Assigned // values of variables over all others, by name
	Overrides map[string]Override // what data blocks read, by reference
}

// VariablePrefix starts the names of environment variables that give values.
const VariablePrefix = "FRAY_VAR_"

// GivenKind is a way to give variables their values on the command line.
type GivenKind string

// The ways to give variables their values.
const (
	GivenVar     GivenKind = "var"      // --var
	GivenVarFile GivenKind = "var-file" // --var-file
	GivenAnswer  GivenKind = "answer"   // typed in when it was asked for
)

// Given is what one flag sets variables to. Later ones win.
type Given struct {
	Kind GivenKind
	Text string // "name=value"; of a GivenVarFile, its path
}

// IsOf reports whether it gives a value to one of some variables, and to no other.
func (g Given) IsOf(variables []string) bool {
	name, _, _ := strings.Cut(g.Text, "=")
	return g.Kind != GivenVarFile && slices.Contains(variables, strings.TrimSpace(name))
}

// Assigned is a value of a variable from what tests the configuration. It goes
// over all others.
type Assigned struct {
	Value cty.Value
	Range hcl.Range
}

// Override is what data blocks read instead of what there is.
type Override struct {
	Value    cty.Value
	Range    hcl.Range
	Target   hcl.Range
	Optional bool // there may be no such data
}

// Reader reads what exists outside of the files. Its errors have a remedy.
type Reader interface {
	Outputs(of StackRef) (map[string]DataOutput, error)
	Reservation(of StackRef, name string) (ReservationData, error)
	Accelerators(accelerators.Query) ([]accelerators.Offer, error)
}

// StackRef names a stack by where its state is. The zero StackRef, but for the
// workspace, is the stack that is evaluated.
type StackRef struct {
	Path      string // absolute directory of a state kept there
	Bucket    string // of a state in a bucket
	Prefix    string // in the bucket
	Workspace string // "" is the default one
}

// DataOutput is an output as a stack recorded it.
type DataOutput struct {
	JSON      []byte
	Sensitive bool
}

// ReservationData is a reservation as it is.
type ReservationData struct {
	Provider    schema.ProviderName
	Shape       schema.Capacity // of one slice; Slices is what is held at least
	Max         int             // slices
	Preemptible bool
	Slices      []string // names of those that are up
	Allocated   int      // slices that jobs have
}
