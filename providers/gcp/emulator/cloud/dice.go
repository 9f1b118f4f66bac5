package cloud

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
)

// luck decides about a group or a request: by its name and how many of that name
// there were.
func (r *rules) luck(k Key, nth uint64) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s/%s", k.Zone, k.Kind, k.Name)
	return r.seeded(h, nth)
}

// dice decide about the nth event of a name.
func (r *rules) dice(what string, nth uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(what))
	return r.seeded(h, nth)
}

func (r *rules) seeded(h hash.Hash64, nth uint64) *rand.Rand {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], nth)
	h.Write(b[:])
	return rand.New(rand.NewPCG(r.scenario.Seed, h.Sum64()))
}
