package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is the service. It is an http.Handler for the paths /storage/v1/,
// /upload/storage/v1/ and /download/storage/v1/, and for /BUCKET/OBJECT.
type Server struct {
	cfg Config

	mu       sync.Mutex
	keep     keeper
	indexes  map[string]*bucketIndex
	sessions map[string]*session // uploads in chunks, by upload_id; those of a process end with it
	last     int64               // generation given

	faults sync.Mutex // guards what is below
	now    Faults
	random *rand.Rand
}

var _ http.Handler = (*Server)(nil)

// New returns a service with the buckets of cfg and those that its directory holds.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start storage emulator: %w", err)
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, keep: newMemory(), indexes: map[string]*bucketIndex{}, sessions: map[string]*session{},
		now: cfg.Faults, random: cfg.random(),
	}
	if cfg.Dir != "" {
		s.keep = directory(cfg.Dir)
	}
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("start storage emulator: %w", err)
	}
	return s, nil
}

func (s *Server) load() error {
	buckets, versions, err := s.keep.load()
	if err != nil {
		return err
	}
	for _, b := range buckets {
		s.indexes[b.Name] = newBucketIndex(b)
	}
	for _, b := range s.cfg.Buckets {
		if known := s.indexes[b.Name]; known != nil && b.Created.IsZero() {
			b.Created = known.Created
		}
		if err := s.open(b); err != nil {
			return err
		}
	}
	for _, v := range versions {
		s.indexes[v.Bucket].set(v)
		s.last = max(s.last, v.Generation)
	}
	return s.repair()
}

// open makes a bucket, or changes its attributes.
func (s *Server) open(b Bucket) error {
	if b.Location = strings.ToUpper(b.Location); b.Location == "" {
		b.Location = "US"
	}
	if b.Created.IsZero() {
		b.Created = s.cfg.Now().UTC()
	}
	if known := s.indexes[b.Name]; known != nil {
		known.Bucket = b
	} else {
		s.indexes[b.Name] = newBucketIndex(b)
	}
	return s.keep.bucket(b)
}

// repair retires versions that had been replaced when the process ended, but not
// retired.
func (s *Server) repair() error {
	for _, index := range s.indexes {
		for _, name := range slices.Clone(index.names) {
			all := index.versions[name]
			for _, v := range all[:len(all)-1] {
				if !v.live() {
					continue
				}
				if err := s.retire(index, v); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// SetFaults changes what goes wrong from now on.
func (s *Server) SetFaults(w Faults) error {
	if err := w.validate(); err != nil {
		return fmt.Errorf("set faults: %w", err)
	}
	s.faults.Lock()
	defer s.faults.Unlock()
	s.now = w
	return nil
}

// fate is what happens to one request.
type fate struct {
	rejected bool
	lost     bool // if it changes something
	latency  time.Duration
}

func (s *Server) fate() fate {
	s.faults.Lock()
	defer s.faults.Unlock()
	return fate{
		rejected: s.random.Float64() < s.now.Unavailable,
		lost:     s.random.Float64() < s.now.LostReplies,
		latency:  s.now.Latency,
	}
}

// index returns a bucket that is there. The lock is held.
func (s *Server) index(bucket string) (*bucketIndex, error) {
	if found := s.indexes[bucket]; found != nil {
		return found, nil
	}
	return nil, noBucket()
}

// nextGeneration is later than all before. The lock is held.
func (s *Server) nextGeneration() int64 {
	s.last = max(s.last+1, s.cfg.Now().UnixMicro())
	return s.last
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fate := s.fate()
	if fate.latency > 0 {
		select {
		case <-s.cfg.After(fate.latency):
		case <-r.Context().Done():
			return
		}
	}
	at, err := parse(r)
	var reply answer
	switch {
	case fate.rejected:
		err = busy()
	case err == nil:
		reply, err = s.serve(r, at)
	}
	if fate.lost && err == nil && changes(r) {
		panic(http.ErrAbortHandler) // breaks the connection, and nothing else
	}
	if err == nil {
		reply.write(w, r)
		return
	}
	known, ok := errors.AsType[*problem](err)
	if !ok {
		known = broken(err)
	}
	known.write(w, at.dialect)
}

func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// serve finds out which call it is.
func (s *Server) serve(r *http.Request, at address) (answer, error) {
	switch at.kind {
	case kindBuckets:
		return s.serveBuckets(r)
	case kindBucket:
		return s.serveBucket(r, at)
	case kindPermissions:
		return s.testPermissions(r, at)
	case kindObjects:
		if r.Method == http.MethodGet {
			return s.list(r, at)
		}
	case kindObject:
		return s.serveObject(r, at)
	case kindUpload:
		return s.upload(r, at)
	case kindCompose, kindCopy, kindRewrite:
		return s.combine(r, at)
	case kindServiceAccount:
		return answer{resource: resource{"kind": "storage#serviceAccount", "email_address": "service-1@gs-project-accounts.iam.gserviceaccount.com"}}, nil
	case kindUnknown:
	}
	return answer{}, unknown(r)
}

// answer is what is answered to a request that was carried out.
type answer struct {
	status   int // 0: 200
	header   http.Header
	resource any      // as JSON; nil: nothing
	reading  *reading // an object's bytes, in place of a resource
}

func (a answer) write(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("X-Guploader-Uploadid", "emulated")
	if a.reading != nil {
		a.reading.write(w, r)
		return
	}
	if a.resource == nil {
		w.Header().Set("Content-Length", "0")
		w.WriteHeader(max(a.status, http.StatusOK))
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(max(a.status, http.StatusOK))
	_ = json.NewEncoder(w).Encode(selected(a.resource, r.URL.Query().Get("fields"))) // the caller is gone if it fails
}
