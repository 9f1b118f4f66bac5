package storage

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// chunkUnit divides every chunk of an upload but the last.
const chunkUnit = 256 << 10

// session is an upload in chunks. One chunk of it is taken at a time.
type session struct {
	bucket string
	draft  objectDraft
	began  *http.Request // for its parameters

	mu   sync.Mutex
	data bytes.Buffer
	made *answer // once the last chunk has made the object
}

// begin opens a session and answers where its chunks go.
func (s *Server) begin(r *http.Request, at address) (answer, error) {
	open := &session{bucket: at.bucket, began: r.Clone(r.Context())}
	open.draft.ContentType = r.Header.Get("X-Upload-Content-Type")
	if err := json.NewDecoder(r.Body).Decode(&open.draft); err != nil && !errors.Is(err, io.EOF) {
		return answer{}, invalid("Parse Error: %v", err)
	}
	when, err := conditionsOf(r)
	if err != nil {
		return answer{}, err
	}
	v, err := open.draft.version(r, at)
	if err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err == nil {
		_, _, err = index.mayInsert(v.Name, when)
	}
	if err != nil {
		return answer{}, err
	}
	id := rand.Text()
	s.sessions[id] = open
	query := r.URL.Query()
	query.Set("upload_id", id)
	location := baseOf(r) + "/upload/storage/v1/b/" + url.PathEscape(at.bucket) + "/o?" + query.Encode()
	return answer{header: http.Header{"Location": {location}}}, nil
}

func (s *Server) session(id string) (*session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.sessions[id]; found != nil {
		return found, nil
	}
	return nil, &problem{http.StatusNotFound, "notFound", "NoSuchUpload", "Upload session not found."}
}

// serveSession takes a chunk, answers how much has arrived, or ends a session.
func (s *Server) serveSession(r *http.Request, at address) (answer, error) {
	id := r.URL.Query().Get("upload_id")
	open, err := s.session(id)
	if err != nil {
		return answer{}, err
	}
	switch r.Method {
	case http.MethodDelete:
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.sessions, id)
		return answer{status: 499}, nil
	case http.MethodPut, http.MethodPost:
		open.mu.Lock()
		defer open.mu.Unlock()
		return s.chunk(r, at, open)
	}
	return answer{}, unknown(r)
}

// chunk appends what is new of a chunk. One that comes again changes nothing,
// and has the same answer.
func (s *Server) chunk(r *http.Request, at address, open *session) (answer, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}, invalid("The body did not arrive: %v", err)
	}
	if open.made != nil {
		return *open.made, nil
	}
	span, err := parseSpan(r.Header.Get("Content-Range"), len(data))
	if err != nil {
		return answer{}, err
	}
	have := int64(open.data.Len())
	switch {
	case span.first > have:
		return answer{}, invalid("Invalid request. Expected the chunk to begin at byte %d, not %d.", have, span.first)
	case len(data)%chunkUnit != 0 && span.total < 0:
		return answer{}, invalid("Invalid request. A chunk of %d bytes is not a multiple of %d.", len(data), chunkUnit)
	}
	if already := have - span.first; already < int64(len(data)) {
		open.data.Write(data[already:])
	}
	if span.total < 0 || int64(open.data.Len()) < span.total {
		return open.incomplete(r), nil
	}
	began := open.began.Clone(r.Context())
	began.Header = r.Header
	made, err := s.create(began, at, open.draft, open.data.Bytes())
	if err == nil {
		open.made, open.data = &made, bytes.Buffer{}
	}
	return made, err
}

// incomplete returns how much has arrived.
func (open *session) incomplete(r *http.Request) answer {
	a := answer{status: http.StatusPermanentRedirect, header: http.Header{}}
	if open.data.Len() > 0 {
		a.header.Set("Range", fmt.Sprintf("bytes=0-%d", open.data.Len()-1))
	}
	if r.Header.Get("X-Guploader-No-308") != "" {
		a.status = http.StatusOK
		a.header.Set("X-Http-Status-Code-Override", strconv.Itoa(http.StatusPermanentRedirect))
	}
	return a
}

// span is where a chunk belongs.
type span struct {
	first int64
	total int64 // -1: not yet known
}

// parseSpan reads "bytes 0-99/*", "bytes 0-99/100", "bytes */100" or nothing,
// which is the whole.
func parseSpan(header string, length int) (span, error) {
	if header == "" {
		return span{total: int64(length)}, nil
	}
	bad := invalid("Failed to parse Content-Range header.")
	rest, ok := strings.CutPrefix(header, "bytes ")
	at, of, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return span{}, bad
	}
	s := span{total: -1}
	var err error
	if of != "*" {
		if s.total, err = strconv.ParseInt(of, 10, 64); err != nil {
			return span{}, bad
		}
	}
	if at == "*" {
		s.first = 0
		return s, nil
	}
	first, last, _ := strings.Cut(at, "-")
	if s.first, err = strconv.ParseInt(first, 10, 64); err != nil {
		return span{}, bad
	}
	end, err := strconv.ParseInt(last, 10, 64)
	if err != nil || end-s.first+1 != int64(length) {
		return span{}, bad
	}
	return s, nil
}
