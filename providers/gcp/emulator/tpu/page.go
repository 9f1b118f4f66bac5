package tpu

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"sort"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// page is the part of a list that one call asks for. Its token names the last
// entry of the page before, so that nothing is listed twice or left out when
// entries come and go between two pages.
type page struct {
	size  int
	after *position
	out   []string // zones that are left out, the same on every page
}

// position is what a page token holds.
type position struct {
	Zone string   `json:"z"`
	Name string   `json:"n"`
	Out  []string `json:"o,omitempty"`
}

type listRequest interface {
	GetParent() string
	GetPageSize() int32
	GetPageToken() string
}

// list reads the request for a page of something.
func (s names) list(r listRequest) (name, page, error) {
	parent, err := s.parent(r.GetParent(), true)
	if err != nil {
		return name{}, page{}, err
	}
	p, err := s.page(int(r.GetPageSize()), r.GetPageToken())
	if err != nil {
		return name{}, page{}, err
	}
	if parent.zone == "-" && p.after == nil {
		p.out = s.cloud.Unreachable()
	}
	return parent, p, nil
}

func (s names) page(size int, token string) (page, error) {
	if size < 0 {
		return page{}, invalid("page_size must not be negative.")
	}
	p := page{size: size}
	if limit := s.cloud.PageSize(); size == 0 || size > limit {
		p.size = limit
	}
	if token == "" {
		return p, nil
	}
	raw, err := base64.URLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(raw, &p.after) != nil || p.after == nil {
		return page{}, invalid("The page token is not valid.")
	}
	p.out = p.after.Out
	return p, nil
}

// locations are the names of the zones that the list leaves out.
func (p page) locations(project string) []string {
	var names []string
	for _, zone := range p.out {
		names = append(names, name{project: project, zone: zone}.parent())
	}
	return names
}

// cut takes the page out of a list that is sorted by zone and name, and the token
// of the next one.
func cut[T any](p page, all []T, key func(T) cloud.Key) (entries []T, next string) {
	if len(p.out) > 0 {
		all = slices.DeleteFunc(slices.Clone(all), func(v T) bool { return slices.Contains(p.out, key(v).Zone) })
	}
	start := 0
	if p.after != nil {
		start = sort.Search(len(all), func(i int) bool {
			k := key(all[i])
			return cmp.Or(cmp.Compare(k.Zone, p.after.Zone), cmp.Compare(k.Name, p.after.Name)) > 0
		})
	}
	entries = all[start:]
	if len(entries) <= p.size {
		return entries, ""
	}
	entries = entries[:p.size]
	last := key(entries[p.size-1])
	return entries, token(position{Zone: last.Zone, Name: last.Name, Out: p.out})
}

func token(at position) string {
	raw, _ := json.Marshal(at) // strings cannot fail
	return base64.URLEncoding.EncodeToString(raw)
}

// wildcard is a zone as the model takes it.
func wildcard(zone string) string {
	if zone == "-" {
		return ""
	}
	return zone
}

type named interface{ GetName() string }

// sorted sorts entries as pages need them: by zone, then by name.
func sorted[T named](all []T) []T {
	slices.SortFunc(all, func(a, b T) int {
		x, y := keyOf(a), keyOf(b)
		if x.Zone != y.Zone {
			return strings.Compare(x.Zone, y.Zone)
		}
		return strings.Compare(x.Name, y.Name)
	})
	return all
}

func keyOf[T named](v T) cloud.Key {
	n, _ := parseName(v.GetName())
	return cloud.Key{Zone: n.zone, Name: n.id}
}
