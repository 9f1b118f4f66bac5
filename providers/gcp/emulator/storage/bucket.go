package storage

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
)

// baseOf is the address at which a request has found the service.
func baseOf(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// bucketDraft are a request's attributes of a bucket, nil where it has none.
type bucketDraft struct {
	Name       *string
	Location   *string
	Versioning *struct{ Enabled bool }
	Encryption *struct {
		DefaultKmsKeyName string
	}
}

func (d bucketDraft) over(b Bucket) Bucket {
	if d.Name != nil {
		b.Name = *d.Name
	}
	if d.Location != nil {
		b.Location = *d.Location
	}
	if d.Versioning != nil {
		b.Versioning = d.Versioning.Enabled
	}
	if d.Encryption != nil {
		b.KMSKey = d.Encryption.DefaultKmsKeyName
	}
	return b
}

// serveBuckets lists buckets or makes one.
func (s *Server) serveBuckets(r *http.Request) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		items := []resource{}
		for _, name := range slices.Sorted(maps.Keys(s.indexes)) {
			items = append(items, s.indexes[name].resource(baseOf(r)))
		}
		return answer{resource: resource{"kind": "storage#buckets", "items": items}}, nil
	case http.MethodPost:
		var draft bucketDraft
		if err := json.NewDecoder(r.Body).Decode(&draft); err != nil {
			return answer{}, invalid("Parse Error: %v", err)
		}
		b := draft.over(Bucket{})
		if err := (Config{Buckets: []Bucket{b}}).validate(); err != nil {
			return answer{}, invalid("Invalid bucket name: '%s'", b.Name)
		}
		if s.indexes[b.Name] != nil {
			return answer{}, conflict("Your previous request to create the named bucket succeeded and you already own it.")
		}
		if err := s.open(b); err != nil {
			return answer{}, err
		}
		return answer{resource: s.indexes[b.Name].resource(baseOf(r))}, nil
	}
	return answer{}, unknown(r)
}

// serveBucket shows, changes or deletes a bucket.
func (s *Server) serveBucket(r *http.Request, at address) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err != nil {
		return answer{}, err
	}
	permission := map[string]string{
		http.MethodGet: "storage.buckets.get", http.MethodPatch: "storage.buckets.update", http.MethodDelete: "storage.buckets.delete",
	}[r.Method]
	if err := index.allow(permission); err != nil {
		return answer{}, err
	}
	switch r.Method {
	case http.MethodGet:
		return answer{resource: index.resource(baseOf(r))}, nil
	case http.MethodPatch:
		var draft bucketDraft
		if err := json.NewDecoder(r.Body).Decode(&draft); err != nil {
			return answer{}, invalid("Parse Error: %v", err)
		}
		draft.Name, draft.Location = nil, nil // which never change
		if err := s.open(draft.over(index.Bucket)); err != nil {
			return answer{}, err
		}
		return answer{resource: index.resource(baseOf(r))}, nil
	case http.MethodDelete:
		if len(index.names) > 0 {
			return answer{}, conflict("The bucket you tried to delete is not empty.")
		}
		delete(s.indexes, at.bucket)
		return answer{status: http.StatusNoContent}, s.keep.dropBucket(at.bucket)
	}
	return answer{}, unknown(r)
}

// testPermissions returns which of the asked permissions the caller has.
func (s *Server) testPermissions(r *http.Request, at address) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err != nil {
		return answer{}, err
	}
	granted := slices.DeleteFunc(slices.Clone(r.URL.Query()["permissions"]), index.denies)
	body := resource{"kind": "storage#testIamPermissionsResponse"}
	if len(granted) > 0 {
		body["permissions"] = granted
	}
	return answer{resource: body}, nil
}
