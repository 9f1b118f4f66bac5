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

// StoreRequestLog is what the store was asked for since it is recorded, by day. It is replaced as
// a whole and never changed in place.
type StoreRequestLog struct {
	Days []StoreRequestDay `json:"days"` // oldest first
	// Leader is the last count of the process that wrote it, and Hosts are those of the agents, by
	// slice and number: these are in Days already.
	Leader CountedRequests            `json:"leader"`
	Hosts  map[string]CountedRequests `json:"hosts,omitempty"`
}

// StoreRequestDay is what was asked on one day, in UTC.
type StoreRequestDay struct {
	Day    string        `json:"day"` // "2026-11-26"
	Leader StoreRequests `json:"leader"`
	Hosts  StoreRequests `json:"hosts"`
}

// CountedRequests is the count of one process: one that started again has another name.
type CountedRequests struct {
	Process string `json:"process"`
	StoreRequests
}

// After is what came after an earlier count, all of it if that is of another process.
func (c CountedRequests) After(earlier CountedRequests) StoreRequests {
	if c.Process != earlier.Process {
		return c.StoreRequests
	}
	return c.Since(earlier.StoreRequests)
}
