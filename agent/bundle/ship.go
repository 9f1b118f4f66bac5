package bundle

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/state/store"
)

// Project is a directory that is to be shipped.
type Project struct {
	Dir string
	// Bundle is what was measured. Without parts they are measured again, and
	// must still make up a bundle of this name.
	Bundle Manifest
}

// Shipper brings the bundles of projects into a store.
//
// Parts that the store has are not sent again: a shipment that
// was killed is continued by the next one, and a project that has changed a
// little ships a little.
type Shipper struct {
	Store store.Store
	// Workers is how many parts are sent at a time, and how many projects are
	// packed; 0: 4. Each takes memory for about two parts.
	Workers int
	// Starting is called when a project of several parts is about to be sent, with
	// the number of its bytes that the store has; may be nil. It is called by
	// one goroutine at a time.
	Starting func(p Project, there int64)

	packer packer // zero: the usual one
}

// Ship brings what is missing of the projects' bundles into the store. What is
// packed must be what was measured: if the files have changed since, Ship fails
// and what it has sent is never checked.
func (s Shipper) Ship(ctx context.Context, projects ...Project) error {
	s.Workers = cmp.Or(s.Workers, usualWorkers)
	s.packer = cmp.Or(s.packer, usualPacker())
	all := newGroup(ctx, make(chan struct{}, s.Workers))
	shipment := &shipment{Shipper: s, slots: make(chan struct{}, s.Workers)}
	for _, p := range projects {
		err := all.run(func(ctx context.Context) error {
			if err := shipment.ship(ctx, p); err != nil {
				return fmt.Errorf("ship project %s: %w", p.Dir, err)
			}
			return nil
		})
		if err != nil {
			break // wait returns why
		}
	}
	return all.wait()
}

// shipment is one call of Ship.
type shipment struct {
	Shipper
	slots    chan struct{} // held while parts are sent
	starting sync.Mutex
}

func (s *shipment) ship(ctx context.Context, p Project) error {
	index, complete, err := s.check(ctx, p.Bundle.Sum)
	if err != nil || complete {
		return err
	}
	if p.Bundle.Parts == nil {
		measured, err := s.packer.measure(p.Dir)
		if err != nil {
			return err
		}
		if measured.Sum != p.Bundle.Sum {
			return errChanged
		}
		p.Bundle = measured
	}
	missing, err := s.missing(ctx, p.Bundle)
	if err != nil {
		return err
	}
	s.start(p, missing)
	if len(missing) > 0 {
		if err := s.send(ctx, p, missing); err != nil {
			return err
		}
	}
	if len(p.Bundle.Parts) == 1 {
		return nil
	}
	return s.finish(ctx, p.Bundle, index)
}

// check reports whether the store has all of a bundle, and otherwise returns the
// generation of its index, which is then of no use.
func (s *shipment) check(ctx context.Context, sum string) (index store.Generation, complete bool, err error) {
	found, err := s.Store.List(ctx, store.BundleKey(sum))
	if err != nil {
		return 0, false, err
	}
	has := func(key string) bool {
		return slices.ContainsFunc(found, func(a store.Attrs) bool { return a.Key == key })
	}
	if has(store.BundleKey(sum)) {
		return 0, true, nil
	}
	if !has(indexKey(sum)) {
		return store.Absent, false, nil
	}
	object, err := s.Store.Get(ctx, indexKey(sum))
	if errors.Is(err, store.ErrNotFound) {
		return store.Absent, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	// Its parts may have been deleted since, or it may be damaged.
	m, err := decodeIndex(object.Data, sum)
	if err != nil {
		return object.Generation, false, nil
	}
	missing, err := s.missing(ctx, m)
	return object.Generation, len(missing) == 0, err
}

// missing are the parts that the store does not have, by digest.
func (s *shipment) missing(ctx context.Context, m Manifest) (map[string]Part, error) {
	missing := map[string]Part{}
	for _, p := range m.Parts {
		missing[p.Sum] = p
	}
	if len(m.Parts) == 1 {
		return missing, nil // else it would have been found
	}
	found, err := s.Store.List(ctx, store.BundlesPrefix)
	if err != nil {
		return nil, err
	}
	for _, a := range found {
		sum := strings.TrimPrefix(a.Key, store.BundlesPrefix)
		part, ok := missing[sum]
		if ok && a.Size != part.Size {
			return nil, fmt.Errorf("%s is damaged: it has %d bytes in place of %d; delete it and run the command again",
				objectName(s.Store, a.Key), a.Size, part.Size)
		}
		delete(missing, sum)
	}
	return missing, nil
}

func (s *shipment) start(p Project, missing map[string]Part) {
	if s.Starting == nil || len(p.Bundle.Parts) == 1 {
		return
	}
	var there int64
	for _, part := range p.Bundle.Parts {
		if _, absent := missing[part.Sum]; !absent {
			there += part.Size
		}
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	s.Starting(p, there)
}

var errChanged = errors.New("its files changed while they were being packed; run the command again")

// send packs the project once more and sends the parts that are missing.
func (s *shipment) send(ctx context.Context, p Project, missing map[string]Part) error {
	sending := newGroup(ctx, s.slots)
	n := 0
	_, _, err := s.packer.pack(p.Dir, func(part Part, frame []byte) error {
		if n == len(p.Bundle.Parts) || part != p.Bundle.Parts[n] {
			return errChanged
		}
		n++
		if _, absent := missing[part.Sum]; !absent {
			return nil
		}
		delete(missing, part.Sum) // it may come again
		frame = bytes.Clone(frame)
		return sending.run(func(ctx context.Context) error {
			return s.Store.Upload(ctx, store.BundleKey(part.Sum), bytes.NewReader(frame))
		})
	})
	if err == nil && n < len(p.Bundle.Parts) {
		err = errChanged
	}
	if failed := sending.wait(); failed != nil {
		return failed // and that is why the packing ended
	}
	return err
}

// finish makes the bundle visible.
func (s *shipment) finish(ctx context.Context, m Manifest, present store.Generation) error {
	data, err := encodeIndex(m)
	if err != nil {
		return err
	}
	_, err = s.Store.Put(ctx, indexKey(m.Sum), data, present)
	if !errors.Is(err, store.ErrConflict) {
		return err
	}
	// Another client has shipped the same bundle.
	if _, complete, checkErr := s.check(ctx, m.Sum); checkErr != nil || complete {
		return checkErr
	}
	return fmt.Errorf("%w; run the command again", err)
}

// objectName names an object for people who are to inspect it.
func objectName(s store.Store, key string) string { return s.Location() + "/" + key }
