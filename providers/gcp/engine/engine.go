package engine

import (
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/schema"
)

// Order is what an engine is asked to make.
type Order struct {
	Spec     schema.SliceSpec
	Metadata map[string]string // of each machine, the spec's mark included; nil in updates
	ID       string            // a UUID, the same whenever the same is asked again
}

// Place is where a slice is.
type Place struct {
	Engine schema.Engine
	Zone   string
	Name   string // of the slice
}

// Config configures an engine.
type Config struct {
	Project  string
	Endpoint string           // stands in for every service, without credentials; "": the real services
	Now      func() time.Time // the clock by which changes are counted
	Backoff  time.Duration    // before a read that failed is tried again, doubling
	Local    *Local           // services in this process, in place of an endpoint; nil: none
}

// Local are services in this process: calls to them need no connection.
type Local struct {
	RPC  grpc.ClientConnInterface // of the Cloud TPU API; its replies are not to be changed
	REST http.RoundTripper        // of the others, at any host
}

// HostStatusAttribute is the guest attribute in which a machine reports how far it has
// come, see providers/gcp/host/startup.
const HostStatusAttribute = "fray/status"

// HostReport is what a machine reports in that attribute.
type HostReport struct {
	Host    int    // its number in its slice
	Machine string // the machine's name, where it has no number; else ""
	Status  string
}

// MostHostReports is of how many machines of one slice the reports are read at once.
const MostHostReports = 8

// Listing is one engine's part of an inventory.
type Listing struct {
	// Slices are those of the stack, with Spec.Zone set, in any order. They are not to be
	// changed: the next list may have the same ones.
	Slices   []*schema.SliceStatus
	Unlisted map[string]string    // zone: why
	Skipped  []schema.SkippedItem // with the mark of the stack, and no slices of it
	Others   []Place              // what else there is; it is counted, and never touched
}

// AskError is why an operation could not be asked for. It says nothing about
// the operation.
type AskError struct{ Err error }

func (e *AskError) Error() string { return "ask how it stands: " + e.Err.Error() }

func (e *AskError) Unwrap() error { return e.Err }
