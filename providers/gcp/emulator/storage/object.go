package storage

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"time"
)

// serveObject reads, changes or deletes one object.
func (s *Server) serveObject(r *http.Request, at address) (answer, error) {
	when, err := conditionsOf(r)
	if err != nil {
		return answer{}, err
	}
	if at.dialect == dialectXML && changes(r) {
		return answer{}, unknown(r)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return s.get(r, at, when)
	case http.MethodPatch, http.MethodPut:
		change, err := changeOf(r)
		if err != nil {
			return answer{}, err
		}
		v, err := s.update(at, when, change)
		return answer{resource: v.resource(baseOf(r))}, err
	case http.MethodDelete:
		return answer{status: http.StatusNoContent}, s.remove(at, when)
	}
	return answer{}, unknown(r)
}

// changeOf reads what is to change. PATCH merges metadata: null takes a key away.
// PUT replaces it.
func changeOf(r *http.Request) (func(version) version, error) {
	var draft struct {
		Metadata    map[string]*string
		ContentType *string
	}
	if err := json.NewDecoder(r.Body).Decode(&draft); err != nil {
		return nil, invalid("Parse Error: %v", err)
	}
	return func(v version) version {
		metadata := maps.Clone(v.Metadata)
		if metadata == nil || r.Method == http.MethodPut {
			metadata = map[string]string{}
		}
		for key, value := range draft.Metadata {
			if value == nil {
				delete(metadata, key)
			} else {
				metadata[key] = *value
			}
		}
		v.Metadata = metadata
		if draft.ContentType != nil {
			v.Content.Type = *draft.ContentType
		}
		return v
	}, nil
}

func (s *Server) get(r *http.Request, at address, when conditions) (answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err == nil {
		err = index.allow("storage.objects.get")
	}
	if err != nil {
		return answer{}, err
	}
	v, ok := index.find(at.object, at.generation)
	if !ok {
		return answer{}, index.missing(at.object)
	}
	if err := when.check(v, http.StatusNotModified); err != nil {
		return answer{}, err
	}
	if !at.media {
		return answer{resource: v.resource(baseOf(r))}, nil
	}
	data, err := s.keep.open(v) // also what is replaced now will be read to its end
	if err != nil {
		return answer{}, broken(err)
	}
	return answer{reading: &reading{version: v, data: data}}, nil
}

// reading is an object's bytes on their way.
type reading struct {
	version version
	data    io.ReadSeekCloser
}

func (d *reading) write(w http.ResponseWriter, r *http.Request) {
	defer d.data.Close()
	v, header := d.version, w.Header()
	header.Set("X-Goog-Generation", strconv.FormatInt(v.Generation, 10))
	header.Set("X-Goog-Metageneration", strconv.FormatInt(v.Metageneration, 10))
	header["X-Goog-Hash"] = []string{"crc32c=" + checksum(v.CRC32C), "md5=" + v.md5()}
	header.Set("X-Goog-Stored-Content-Length", strconv.FormatInt(v.Size, 10))
	header.Set("X-Goog-Stored-Content-Encoding", "identity")
	header.Set("X-Goog-Storage-Class", "STANDARD")
	header.Set("Last-Modified", v.Updated.UTC().Format(http.TimeFormat))
	for key, value := range map[string]string{
		"Content-Type": v.Content.Type, "Content-Encoding": v.Content.Encoding, "Content-Language": v.Content.Language,
		"Content-Disposition": v.Content.Disposition, "Cache-Control": v.Content.CacheControl,
	} {
		if value != "" {
			header.Set(key, value)
		}
	}
	if v.Content.Type == "" {
		header.Set("Content-Type", "application/octet-stream")
	}
	for key, value := range v.Metadata {
		header.Set("X-Goog-Meta-"+key, value)
	}
	http.ServeContent(w, r, "", time.Time{}, d.data) // which knows ranges; the conditions of HTTP are not the service's
}
