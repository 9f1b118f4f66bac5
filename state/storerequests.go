package state

// StoreRequests counts what one process has asked of the store's service since it started, by the
// classes that the service bills. A directory bills nothing and has none.
type StoreRequests struct {
	Writes  uint64 `json:"writes,omitempty"`  // objects that were written: class A of Cloud Storage
	Lists   uint64 `json:"lists,omitempty"`   // pages of lists: class A
	Reads   uint64 `json:"reads,omitempty"`   // objects or their attributes: class B
	Deletes uint64 `json:"deletes,omitempty"` // free of charge
}

// Plus adds two counts.
func (r StoreRequests) Plus(o StoreRequests) StoreRequests {
	return StoreRequests{Writes: r.Writes + o.Writes, Lists: r.Lists + o.Lists, Reads: r.Reads + o.Reads, Deletes: r.Deletes + o.Deletes}
}

// Since is what came after an earlier count of the same process. A count that is smaller than the
// earlier one is of a process that has started again: all of it is new.
func (r StoreRequests) Since(earlier StoreRequests) StoreRequests {
	if r.Writes < earlier.Writes || r.Lists < earlier.Lists || r.Reads < earlier.Reads || r.Deletes < earlier.Deletes {
		return r
	}
	return StoreRequests{
		Writes: r.Writes - earlier.Writes, Lists: r.Lists - earlier.Lists,
		Reads: r.Reads - earlier.Reads, Deletes: r.Deletes - earlier.Deletes,
	}
}
