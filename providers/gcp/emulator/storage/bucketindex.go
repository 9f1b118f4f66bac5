package storage

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// bucketIndex is a bucket with the index of its objects.
type bucketIndex struct {
	Bucket
	names    []string             // of all that have a version, sorted by bytes
	versions map[string][]version // oldest first; only the last may be live
	changed  map[string]time.Time // when an object was last changed
}

func newBucketIndex(b Bucket) *bucketIndex {
	return &bucketIndex{Bucket: b, versions: map[string][]version{}, changed: map[string]time.Time{}}
}

func (s *bucketIndex) live(name string) (version, bool) {
	all := s.versions[name]
	if len(all) == 0 || !all[len(all)-1].live() {
		return version{}, false
	}
	return all[len(all)-1], true
}

// find is a generation of an object, or with 0 the live one.
func (s *bucketIndex) find(name string, generation int64) (version, bool) {
	if generation == 0 {
		return s.live(name)
	}
	all := s.versions[name]
	i := slices.IndexFunc(all, func(v version) bool { return v.Generation == generation })
	if i < 0 {
		return version{}, false
	}
	return all[i], true
}

// set adds a version, or replaces the one of its generation.
func (s *bucketIndex) set(v version) {
	all := slices.Clone(s.versions[v.Name]) // lists may be reading it
	if i, found := slices.BinarySearchFunc(all, v.Generation, byGeneration); found {
		all[i] = v
	} else {
		all = slices.Insert(all, i, v)
	}
	if i, found := slices.BinarySearch(s.names, v.Name); !found {
		s.names = slices.Insert(s.names, i, v.Name)
	}
	s.versions[v.Name] = all
}

func (s *bucketIndex) unset(v version) {
	rest := slices.DeleteFunc(slices.Clone(s.versions[v.Name]), func(other version) bool { return other.Generation == v.Generation })
	s.versions[v.Name] = rest
	if len(rest) > 0 {
		return
	}
	delete(s.versions, v.Name)
	if i, found := slices.BinarySearch(s.names, v.Name); found {
		s.names = slices.Delete(s.names, i, i+1)
	}
}

func byGeneration(v version, generation int64) int { return cmp.Compare(v.Generation, generation) }

func (s *bucketIndex) denies(permission string) bool { return slices.Contains(s.Denied, permission) }

// allow is nil if the caller has the permission.
func (s *bucketIndex) allow(permission string) error {
	if s.denies(permission) {
		return denied(permission)
	}
	return nil
}

// missing is the answer to a request for an object that is not there.
func (s *bucketIndex) missing(name string) error {
	if s.denies("storage.objects.list") { // else the answer would show whether it is there
		return denied("storage.objects.get")
	}
	return noObject(s.Name, name)
}

// conditions are a request's preconditions; nil ones are not stated.
type conditions struct {
	generation, notGeneration         *int64 // 0: there is no live version
	metageneration, notMetageneration *int64
}

// check returns nil if they hold for what is there; a version that is not there
// has generation 0. unchanged is what is answered if something is only wanted
// when it is another one.
func (c conditions) check(present version, unchanged int) error {
	is := func(want *int64, got int64) bool { return want != nil && *want == got }
	isNot := func(want *int64, got int64) bool { return want != nil && *want != got }
	switch {
	case isNot(c.generation, present.Generation), isNot(c.metageneration, present.Metageneration):
		return unmet()
	case is(c.notGeneration, present.Generation), is(c.notMetageneration, present.Metageneration):
		p := unmet()
		p.status = unchanged
		return p
	}
	return nil
}

// insert makes a draft with its data the live version of its object.
func (s *Server) insert(draft version, data []byte, when conditions) (version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(draft.Bucket)
	if err != nil {
		return version{}, err
	}
	old, replaces, err := index.mayInsert(draft.Name, when)
	if err == nil {
		err = s.slow(index, draft.Name)
	}
	if err != nil {
		return version{}, err
	}
	draft = draft.sum(data)
	draft.Created, draft.Generation, draft.Metageneration = s.cfg.Now().UTC(), s.nextGeneration(), 1
	draft.Updated = draft.Created
	if draft.KMSKey = cmp.Or(draft.KMSKey, index.KMSKey); draft.KMSKey != "" {
		draft.KMSKey += "/cryptoKeyVersions/1"
	}
	if err := s.keep.put(draft, data); err != nil {
		return version{}, broken(err)
	}
	index.set(draft)
	if replaces {
		err = s.retire(index, old)
	}
	return draft, err
}

// mayInsert is nil if a version may be made now. It returns what it would replace.
func (s *bucketIndex) mayInsert(name string, when conditions) (old version, replaces bool, err error) {
	if err := s.allow("storage.objects.create"); err != nil {
		return old, false, err
	}
	old, replaces = s.live(name)
	if err := when.check(old, http.StatusPreconditionFailed); err != nil {
		return old, replaces, err
	}
	if replaces {
		err = s.allow("storage.objects.delete")
	}
	return old, replaces, err
}

// slow is an error if the object was changed too short a time ago.
func (s *Server) slow(index *bucketIndex, name string) error {
	now := s.cfg.Now()
	if last, ok := index.changed[name]; ok && s.cfg.WriteInterval > 0 && now.Sub(last) < s.cfg.WriteInterval {
		return tooSoon(index.Name, name)
	}
	index.changed[name] = now
	return nil
}

// retire ends a version's life: it becomes an old one or is gone.
func (s *Server) retire(index *bucketIndex, v version) error {
	if !index.Versioning {
		index.unset(v)
		if err := s.keep.drop(v); err != nil {
			return broken(err)
		}
		return nil
	}
	v.Deleted = s.cfg.Now().UTC()
	index.set(v)
	if err := s.keep.mark(v); err != nil {
		return broken(err)
	}
	return nil
}

// remove deletes a generation for good, or with 0 retires the live one.
func (s *Server) remove(at address, when conditions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err == nil {
		err = index.allow("storage.objects.delete")
	}
	if err != nil {
		return err
	}
	v, ok := index.find(at.object, at.generation)
	if !ok {
		return index.missing(at.object)
	}
	if err := when.check(v, http.StatusPreconditionFailed); err != nil {
		return err
	}
	if err := s.slow(index, at.object); err != nil {
		return err
	}
	if at.generation == 0 {
		return s.retire(index, v)
	}
	index.unset(v)
	if err := s.keep.drop(v); err != nil {
		return broken(err)
	}
	return nil
}

// update replaces the metadata of a version.
func (s *Server) update(at address, when conditions, change func(version) version) (version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err == nil {
		err = index.allow("storage.objects.update")
	}
	if err != nil {
		return version{}, err
	}
	v, ok := index.find(at.object, at.generation)
	if !ok {
		return version{}, index.missing(at.object)
	}
	if err := when.check(v, http.StatusPreconditionFailed); err != nil {
		return version{}, err
	}
	if err := s.slow(index, at.object); err != nil {
		return version{}, err
	}
	v = change(v)
	v.Metageneration++
	v.Updated = s.cfg.Now().UTC()
	index.set(v)
	if err := s.keep.mark(v); err != nil {
		return version{}, broken(err)
	}
	return v, nil
}
