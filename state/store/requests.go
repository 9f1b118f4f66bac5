package store

import "github.com/fray-ml/fray/state"

// Billed is a Store whose service bills requests.
type Billed interface {
	// Requests counts those of this process, tries that failed among them.
	Requests() state.StoreRequests
}

// AsBilled unwraps stores. It reports false for a store that costs nothing, as a directory.
func AsBilled(s Store) (Billed, bool) { return behind[Billed](s) }
