package storage

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxPage is the most that one answer to a list holds, names and prefixes together.
const maxPage = 1000

// query is what a list asks for.
type query struct {
	prefix, delimiter string
	start, end        string // names from and up to, without it; "": all
	versions          bool
	after             cursor
	size              int
}

// cursor is the last that a page held: of a name its generation too, or 0 if all
// of it, or of all with the prefix that it is.
type cursor struct {
	name       string
	generation int64
}

func (c cursor) token() string {
	return base64.URLEncoding.EncodeToString([]byte(strconv.FormatInt(c.generation, 10) + " " + c.name))
}

func parseCursor(token string) (cursor, error) {
	if token == "" {
		return cursor{}, nil
	}
	decoded, err := base64.URLEncoding.DecodeString(token)
	generation, name, ok := strings.Cut(string(decoded), " ")
	if err != nil || !ok {
		return cursor{}, invalid("Invalid page token.")
	}
	n, err := number(generation)
	if err != nil {
		return cursor{}, invalid("Invalid page token.")
	}
	return cursor{name, n}, nil
}

func parseQuery(values url.Values) (query, error) {
	q := query{
		prefix: values.Get("prefix"), delimiter: values.Get("delimiter"), start: values.Get("startOffset"),
		end: values.Get("endOffset"), versions: values.Get("versions") == "true", size: maxPage,
	}
	for _, unknown := range []string{"matchGlob", "softDeleted", "filter", "includeTrailingDelimiter"} {
		if values.Get(unknown) != "" && values.Get(unknown) != "false" {
			return q, invalid("the emulator of Cloud Storage does not know the parameter %s of a list", unknown)
		}
	}
	if most := values.Get("maxResults"); most != "" {
		n, err := strconv.Atoi(most)
		if err != nil || n < 0 {
			return q, invalid("Invalid value for maxResults: %q", most)
		}
		if n > 0 {
			q.size = min(n, maxPage)
		}
	}
	var err error
	q.after, err = parseCursor(values.Get("pageToken"))
	return q, err
}

// page is one answer.
type page struct {
	items    []version
	prefixes []string
	next     string
}

func (p *page) full(q query) bool { return len(p.items)+len(p.prefixes) >= q.size }

// list answers with one page of a bucket's objects.
func (s *Server) list(r *http.Request, at address) (answer, error) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		return answer{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	index, err := s.index(at.bucket)
	if err == nil {
		err = index.allow("storage.objects.list")
	}
	if err != nil {
		return answer{}, err
	}
	p := index.page(q)
	body := resource{"kind": "storage#objects"}
	if len(p.items) > 0 {
		items := make([]resource, 0, len(p.items))
		for _, v := range p.items {
			items = append(items, v.resource(baseOf(r)))
		}
		body["items"] = items
	}
	if len(p.prefixes) > 0 {
		body["prefixes"] = p.prefixes
	}
	if p.next != "" {
		body["nextPageToken"] = p.next
	}
	return answer{resource: body}, nil
}

// page goes through the names from where the last page ended.
func (s *bucketIndex) page(q query) page {
	var p page
	var last cursor
	from, _ := slices.BinarySearch(s.names, max(q.prefix, q.start, q.after.name))
	for _, name := range s.names[from:] {
		if !strings.HasPrefix(name, q.prefix) || q.end != "" && name >= q.end {
			break
		}
		if folder, ok := q.folder(name); ok {
			if folder == last.name || folder == q.after.name || !s.shows(name, q) {
				continue
			}
			if p.full(q) {
				p.next = last.token()
				return p
			}
			p.prefixes, last = append(p.prefixes, folder), cursor{name: folder}
			continue
		}
		for _, v := range s.versions[name] {
			if !v.live() && !q.versions || name == q.after.name && v.Generation <= q.after.generation {
				continue
			}
			if p.full(q) {
				p.next = last.token()
				return p
			}
			p.items, last = append(p.items, v), cursor{name, v.Generation}
		}
	}
	return p
}

// folder is the name up to the first delimiter after the prefix.
func (q query) folder(name string) (string, bool) {
	if q.delimiter == "" {
		return "", false
	}
	i := strings.Index(name[len(q.prefix):], q.delimiter)
	if i < 0 {
		return "", false
	}
	return name[:len(q.prefix)+i+len(q.delimiter)], true
}

func (s *bucketIndex) shows(name string, q query) bool {
	_, live := s.live(name)
	return live || q.versions
}
