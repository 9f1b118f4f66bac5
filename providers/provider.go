// Package providers says what a source of capacity must do, and classifies the
// errors of those that do it.
//
// A provider creates, lists and deletes slices; it decides nothing. Retries,
// placement and failover are plan's. providertest holds the conformance suite.
package providers

import (
	"context"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Provider is a source of slices. Methods may be called concurrently; none of
// them waits for a slice to come up.
type Provider interface {
	// Inventory lists every slice that carries the stack's mark, or any
	// stack's for "". What cannot be listed whole is an error or a zone that
	// is named as unlisted, never a shorter list. A single item that cannot be
	// read, or is a copy of another, is named as skipped.
	Inventory(ctx context.Context, stack string) (schema.Inventory, error)
	// Get reads one slice directly, not through a list: the name, zone and engine
	// of spec say where it would be. It reports false only where the source of
	// slices itself says that there is none; what could not be read is an error,
	// which says nothing about the slice. What bears the name and is not this
	// stack's is not found either.
	Get(ctx context.Context, spec schema.SliceSpec) (status schema.SliceStatus, found bool, err error)
	// Create asks for a slice and returns once that is accepted. Creating
	// one that is there already adopts it and starts what is missing of it;
	// one of the same name that is not this stack's, or has another shape,
	// is a conflict. Where an accepted creation has failed since, the next
	// Create returns that error instead of asking again, once.
	Create(ctx context.Context, spec schema.SliceSpec) error
	// Delete asks for a slice to go, with all its processes; one that is
	// not there is no error. Where it is, is said by spec as for Get, so that no
	// list has to show it; without a zone it is looked for. Delete rejects what does
	// not carry the mark of spec.Stack.
	Delete(ctx context.Context, spec schema.SliceSpec) error
}

// Updater is what a provider implements whose slices can be changed in place.
type Updater interface {
	// Update makes a slice that is there have spec.Cloud.Live, and records spec
	// as its own. In all else spec is what the slice has.
	Update(ctx context.Context, spec schema.SliceSpec) error
}

// AsUpdater finds out whether a provider, or one that it wraps, can change slices
// in place.
func AsUpdater(p Provider) (Updater, bool) { return as[Updater](p) }

// AsImporter is the same for taking over what exists, and AsChecker for finding
// mistakes.
func AsImporter(p Provider) (Importer, bool) { return as[Importer](p) }

// AsChecker finds out whether a provider can tell mistakes beforehand.
func AsChecker(p Provider) (Checker, bool) { return as[Checker](p) }

func as[T any](p Provider) (T, bool) {
	for {
		if found, ok := p.(T); ok {
			return found, true
		}
		wrapper, ok := p.(interface{ Unwrap() Provider })
		if !ok {
			var none T
			return none, false
		}
		p = wrapper.Unwrap()
	}
}

// Importer is what a provider implements that can take over what was made by
// other means.
type Importer interface {
	// Find states what Import would make of what id names, or why it would not,
	// and changes nothing.
	Find(ctx context.Context, id string, spec schema.SliceSpec) (schema.SliceStatus, error)
	// Import marks what id names as the slice spec, which has the name, shape
	// and zone that the provider finds, and returns it. What has another
	// stack's mark, or another shape than spec asks for, is a conflict.
	Import(ctx context.Context, id string, spec schema.SliceSpec) (schema.SliceSpec, error)
}

// HostReader is what a provider implements that can read what hosts report about
// themselves at the source of slices, where they have not reported to the store.
type HostReader interface {
	// HostReports are the reports of those of a slice's hosts that have one there. A
	// host that the source does not number is among them whichever it is.
	HostReports(ctx context.Context, spec schema.SliceSpec, hosts []int) ([]HostReport, error)
}

// HostReport is what a host reports at the source of slices.
type HostReport struct {
	Host    int    // its number in its slice
	Machine string // the machine's name, where it has no number; else ""
	Status  string // "failed: no service account"
}

// AsHostReader finds out whether a provider, or one that it wraps, can read what
// hosts report there.
func AsHostReader(p Provider) (HostReader, bool) { return as[HostReader](p) }

// Pacer is what a provider implements that counts how often it is listed.
type Pacer interface {
	// Pace is how long an inventory is good for: another one before brings
	// nothing that is worth a call.
	Pace() time.Duration
}

// AsPacer finds out whether a provider, or one that it wraps, has a pace.
func AsPacer(p Provider) (Pacer, bool) { return as[Pacer](p) }

// Problem is something about a job, or a provider block, that the provider knows
// cannot work.
type Problem struct {
	Addr      schema.Address // zero: of the provider block
	Attribute string         // what to point at: a key's part after '#' in Config.Ranges
	Warning   bool
	Summary   string
	Detail    string // what to do
}

// Checker is what a provider may implement to find mistakes before anything is
// touched. It reads the outside world but changes nothing.
type Checker interface {
	Check(ctx context.Context, desired schema.Desired) []Problem
}
