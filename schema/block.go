package schema

import (
	"slices"
)

// Repetition is how a block becomes instances.
type Repetition string

// The repetitions.
const (
	RepeatNone  Repetition = ""
	RepeatCount Repetition = "count" // the replicas of a service, too
	RepeatEach  Repetition = "for_each"
)

// Block is a block of the files that has an address, and which instances it has:
// of what is not declared any more it says why.
type Block struct {
	Repetition Repetition
	Attribute  string   // that says so: "count", "replicas" or "for_each"
	Instances  int      // how many
	Keys       []string // of for_each
}

// HasKey reports whether for_each has a key.
func (b Block) HasKey(key string) bool { return slices.Contains(b.Keys, key) }
