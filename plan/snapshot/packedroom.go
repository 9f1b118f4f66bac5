package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// FreeHost is what a host of a reservation has left for packed tasks.
type FreeHost struct {
	Host               schema.SliceSpec // the slice
	N                  int              // of its hosts
	Up                 bool
	Grown              bool           // its slice is one by which the reservation would grow
	CPU                float64        // this, Memory and Disk are below 0 where room is reserved that has not come free yet
	Memory             schema.Bytes   // 0 with AnyMemory
	Disk               schema.Bytes   // 0 with AnyDisk
	AnyMemory, AnyDisk bool           // the reservation does not say how much there is
	Ports              map[int]int    // fixed ones, by how many packed tasks have them
	Packed             int            // that have a part of it, those for whom some is kept among them
	Reserved           schema.Address // the last for whom some of it is kept, or all
	Stays              Staying        // see findStays
	Busy               bool           // its slice is, or will be, a job's as a whole; of hosts as they may be, see fitting
}

// Share is what one task takes of a host.
type Share struct {
	CPU    float64
	Memory schema.Bytes
	Disk   schema.Bytes
	Ports  []int
}

func (s Share) String() string {
	words := []string{fmt.Sprintf("%g CPU", s.CPU)}
	if s.Memory > 0 {
		words = append(words, s.Memory.String()+" memory")
	}
	if s.Disk > 0 {
		words = append(words, s.Disk.String()+" disk")
	}
	for _, port := range s.Ports {
		words = append(words, fmt.Sprintf("port %d", port))
	}
	return strings.Join(words, ", ")
}

// CPUEpsilon is what may be lost by adding up parts of cores.
const CPUEpsilon = 1e-9

// Lack is what a room has too little of; the zero lack is none.
type Lack struct {
	Of   lackOf
	Port int // with lackPort
}

// lackOf is a closed set.
type lackOf string

// What may be lacking.
const (
	lackNone   lackOf = ""
	lackCPU    lackOf = "CPU"
	lackMemory lackOf = "memory"
	lackDisk   lackOf = "disk"
	LackPort   lackOf = "port"
)

// None reports whether nothing is lacking.
func (l Lack) None() bool { return l.Of == lackNone }

// Lacks is what a room has too little of, none if a share fits.
func (r *FreeHost) Lacks(s *Share) Lack {
	switch {
	case s.CPU > r.CPU+CPUEpsilon:
		return Lack{Of: lackCPU}
	case !r.AnyMemory && s.Memory > 0 && s.Memory > r.Memory:
		return Lack{Of: lackMemory}
	case !r.AnyDisk && s.Disk > 0 && s.Disk > r.Disk:
		return Lack{Of: lackDisk}
	}
	for _, port := range s.Ports {
		if r.Ports[port] > 0 {
			return Lack{Of: LackPort, Port: port}
		}
	}
	return Lack{}
}

// Take takes a share of a room n times; -1 gives it back.
func (r *FreeHost) Take(s *Share, n int) {
	r.CPU -= float64(n) * s.CPU
	if !r.AnyMemory {
		r.Memory -= schema.Bytes(n) * s.Memory
	}
	if !r.AnyDisk {
		r.Disk -= schema.Bytes(n) * s.Disk
	}
	for _, port := range s.Ports {
		r.Ports[port] += n
	}
	r.Packed += n
}

// FullFor is what a reservation has no room left for in this Diff, so that many
// jobs that wait for the same are told so without a look at every host.
type FullFor struct {
	Share Share
	Tasks int
	Why   plan.Reason
}

// Covers reports whether what was too little then is too little for this share.
func (f *FullFor) Covers(s *Share, tasks int) bool {
	return tasks == f.Tasks && s.CPU == f.Share.CPU && s.Memory == f.Share.Memory && s.Disk == f.Share.Disk &&
		slices.Equal(f.Share.Ports, s.Ports)
}

// IsBetter reports whether a room is to be taken rather than another.
func (r *FreeHost) IsBetter(other *FreeHost) bool {
	if r.Up != other.Up {
		return r.Up
	}
	// In whole numbers: what is lost by adding up decides nothing.
	return cmp.Or(cmp.Compare(Milli(r.CPU), Milli(other.CPU)), cmp.Compare(r.Memory, other.Memory), cmp.Compare(r.Disk, other.Disk)) < 0
}
