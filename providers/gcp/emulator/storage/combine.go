package storage

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// maxComponents is how many objects one call composes.
const maxComponents = 32

// source is an object that another one is made of.
type source struct {
	at   address
	when conditions
}

// component is an object to compose another one of. Clients write numbers with quotes
// and without.
type component struct {
	Name                string
	Generation          json.Number
	ObjectPreconditions struct {
		IfGenerationMatch json.Number
	}
}

func (c component) in(bucket string) (source, error) {
	at := address{bucket: bucket, object: c.Name}
	var err error
	if at.generation, err = number(c.Generation.String()); err != nil {
		return source{}, invalid("Invalid generation: %v", err)
	}
	when, err := onGeneration(c.ObjectPreconditions.IfGenerationMatch.String())
	return source{at, when}, err
}

// onGeneration is the condition that an object has a generation; "": there is none.
func onGeneration(stated string) (conditions, error) {
	if stated == "" {
		return conditions{}, nil
	}
	n, err := number(stated)
	if err != nil {
		return conditions{}, invalid("Invalid generation of a source: %v", err)
	}
	return conditions{generation: &n}, nil
}

// content reads a source. The lock is not held.
func (s *Server) content(from source) (version, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(from.at.bucket)
	if err == nil {
		err = index.allow("storage.objects.get")
	}
	if err != nil {
		return version{}, nil, err
	}
	v, ok := index.find(from.at.object, from.at.generation)
	if !ok {
		return version{}, nil, index.missing(from.at.object)
	}
	if err := from.when.check(v, http.StatusPreconditionFailed); err != nil {
		return version{}, nil, err
	}
	reader, err := s.keep.open(v)
	if err != nil {
		return version{}, nil, broken(err)
	}
	defer reader.Close()
	data, err := io.ReadAll(reader)
	if err != nil {
		return version{}, nil, broken(err)
	}
	return v, data, nil
}

// combine makes an object of others.
func (s *Server) combine(r *http.Request, at address) (answer, error) {
	switch {
	case r.Method != http.MethodPost:
		return answer{}, unknown(r)
	case at.kind == kindCompose:
		return s.compose(r, at)
	}
	return s.copy(r, at)
}

// compose makes an object of the bytes of others of its bucket, in their order.
func (s *Server) compose(r *http.Request, at address) (answer, error) {
	var asked struct {
		Destination   objectDraft
		SourceObjects []component
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return answer{}, invalid("Parse Error: %v", err)
	}
	if n := len(asked.SourceObjects); n == 0 || n > maxComponents {
		return answer{}, invalid("The number of source components provided (%d) is not between 1 and %d", n, maxComponents)
	}
	var data []byte
	components := 0
	for _, o := range asked.SourceObjects {
		from, err := o.in(at.bucket)
		if err != nil {
			return answer{}, err
		}
		v, part, err := s.content(from)
		if err != nil {
			return answer{}, err
		}
		data = append(data, part...)
		components += max(v.Components, 1)
	}
	asked.Destination.Name = at.object
	v, err := asked.Destination.version(r, at)
	if err != nil {
		return answer{}, err
	}
	v.Components = components
	return s.made(r, v, data)
}

// copy makes an object of the bytes and, where the request states none, the
// attributes of another one; a rewrite answers with its progress, which is done.
func (s *Server) copy(r *http.Request, at address) (answer, error) {
	from := source{at: at}
	var err error
	if from.at.generation, err = number(r.URL.Query().Get("sourceGeneration")); err != nil {
		return answer{}, invalid("Invalid sourceGeneration: %v", err)
	}
	if from.when, err = onGeneration(r.URL.Query().Get("ifSourceGenerationMatch")); err != nil {
		return answer{}, err
	}
	old, data, err := s.content(from)
	if err != nil {
		return answer{}, err
	}
	var draft objectDraft
	if err := json.NewDecoder(r.Body).Decode(&draft); err != nil && !errors.Is(err, io.EOF) {
		return answer{}, invalid("Parse Error: %v", err)
	}
	draft.Name = at.to.object
	v, err := draft.version(r, address{bucket: at.to.bucket})
	if err != nil {
		return answer{}, err
	}
	if v.Content == (content{}) {
		v.Content = old.Content
	}
	if v.Metadata == nil {
		v.Metadata = old.Metadata
	}
	made, err := s.made(r, v, data)
	if err != nil || at.kind == kindCopy {
		return made, err
	}
	size := strconv.Itoa(len(data))
	return answer{resource: resource{
		"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": true, "resource": made.resource,
	}}, nil
}

// made keeps what a request has made, on its conditions.
func (s *Server) made(r *http.Request, v version, data []byte) (answer, error) {
	when, err := conditionsOf(r)
	if err != nil {
		return answer{}, err
	}
	v, err = s.insert(v, data, when)
	return answer{resource: v.resource(baseOf(r))}, err
}
