package plan

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// DoubtKind is the closed set of what lists say against a slice.
type DoubtKind string

// The kinds.
const (
	DoubtAbsent DoubtKind = "absent" // it is not listed
	DoubtDead   DoubtKind = "dead"   // it is listed as dead, or as going though it was not asked to go
	DoubtShape  DoubtKind = "shape"  // it is listed in another shape than the recorded one
	// DoubtFormer: it is listed as made before it was asked for, so that it may be what
	// had its name before.
	DoubtFormer DoubtKind = "former"
	// DoubtUnwanted: it is listed, and nothing is recorded of it.
	DoubtUnwanted DoubtKind = "unwanted"
	// DoubtSkipped: the provider lists something of that name and cannot read it.
	// No read of it helps.
	DoubtSkipped DoubtKind = "skipped"

	// These say nothing against a slice. It is read so that what is to be done does
	// not wait for a list, which stands as long as nothing was read.

	DoubtGoing    DoubtKind = "going"    // it is to go and is listed still
	DoubtComing   DoubtKind = "coming"   // it was asked for and is not listed yet
	DoubtDown     DoubtKind = "down"     // it is listed with hosts that are down
	DoubtSilent   DoubtKind = "silent"   // it is listed as alive and no host of it reports
	DoubtUnlisted DoubtKind = "unlisted" // its place was not listed, and something is to be done about it
)

// Pace is how long a doubt of a kind stands before its slice is read, and after what
// time it is read again.
func (k DoubtKind) Pace() (first, again time.Duration) {
	switch k {
	case DoubtAbsent, DoubtDead, DoubtShape, DoubtFormer, DoubtUnwanted, DoubtSkipped, DoubtDown, DoubtUnlisted:
		return 0, 10 * time.Second
	case DoubtComing, DoubtSilent:
		return 0, 30 * time.Second
	case DoubtGoing: // deletions take minutes, and a list mostly shows their end
		return 20 * time.Second, 30 * time.Second
	}
	return 0, 10 * time.Second
}

// Doubt is a slice that the next observation reads directly.
type Doubt struct {
	Slice schema.SliceSpec `json:"slice"`
	Kind  DoubtKind        `json:"kind"`
	// Open says that nothing confirms or refutes it yet.
	Open bool `json:"-"`
}

// Confirmation is what is known of a slice in doubt beside the last list.
type Confirmation struct {
	Since  time.Time          // of the first list that spoke against it
	Lists  int                // that have done so, in a row
	Answer Answer             // of the last direct read
	ReadAt time.Time          // when that was begun
	Status schema.SliceStatus // with AnswerFound: what it found
}

// Answer is what the last direct read of a slice said.
type Answer string

// IsAgainst reports whether a kind says something against a slice, which is not
// believed unread.
func (k DoubtKind) IsAgainst() bool {
	switch k {
	case DoubtAbsent, DoubtDead, DoubtShape, DoubtFormer, DoubtUnwanted, DoubtSkipped:
		return true
	case DoubtGoing, DoubtComing, DoubtDown, DoubtSilent, DoubtUnlisted:
	}
	return false
}
