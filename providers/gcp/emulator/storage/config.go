package storage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Config configures New.
type Config struct {
	// Dir keeps the buckets; made if need be. "": they are in memory.
	Dir string
	// Buckets are there from the beginning. One that is in Dir already keeps
	// its objects and takes these attributes.
	Buckets []Bucket
	// Now is the clock; nil: the machine's.
	Now func() time.Time
	// WriteInterval is the least time between two changes of one object, by
	// Now; what comes earlier is answered with 429. The service's is a second.
	// 0: none.
	WriteInterval time.Duration
	// Faults are the first ones; SetFaults changes them.
	Faults Faults
	// Seed makes what goes wrong repeatable.
	Seed uint64
	// After is the clock of Faults.Latency; nil: the machine's.
	After func(time.Duration) <-chan time.Time
}

// Bucket is what a bucket is, beside its objects.
type Bucket struct {
	Name string `json:"name"`
	// Location is a region or a multi-region, "US-CENTRAL1"; "": US.
	Location string `json:"location,omitempty"`
	// Versioning keeps what is replaced or deleted.
	Versioning bool `json:"versioning,omitempty"`
	// KMSKey encrypts what names no key, "projects/P/locations/L/keyRings/R/cryptoKeys/K".
	KMSKey string `json:"kmsKey,omitempty"`
	// Denied are permissions that the caller does not have, "storage.objects.create".
	Denied  []string  `json:"denied,omitempty"`
	Created time.Time `json:"created,omitzero"` // zero: when it was first opened
}

// Faults are what goes wrong. The zero Faults are none.
type Faults struct {
	Unavailable float64       // share of requests, 0 to 1, answered with 503 and not carried out
	LostReplies float64       // share of changes, 0 to 1, that are carried out and whose connection then breaks
	Latency     time.Duration // before every answer
}

func (c Config) validate() error {
	seen := map[string]bool{}
	for _, b := range c.Buckets {
		switch {
		case b.Name == "" || strings.ContainsAny(b.Name, "/\\: ") || strings.HasPrefix(b.Name, "."):
			return fmt.Errorf("bucket %q is not a name", b.Name)
		case seen[b.Name]:
			return fmt.Errorf("bucket %q is there twice", b.Name)
		}
		seen[b.Name] = true
	}
	if c.WriteInterval < 0 {
		return fmt.Errorf("write interval %v must not be negative", c.WriteInterval)
	}
	return c.Faults.validate()
}

func (w Faults) validate() error {
	for _, share := range []float64{w.Unavailable, w.LostReplies} {
		if share < 0 || share > 1 {
			return fmt.Errorf("a share of %v is not between 0 and 1", share)
		}
	}
	if w.Latency < 0 {
		return errors.New("latency must not be negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.After == nil {
		c.After = time.After
	}
	return c
}

func (c Config) random() *rand.Rand { return rand.New(rand.NewPCG(c.Seed, 0x67637321)) }
