package storage

import (
	"encoding/json"
	"strings"
)

// selected is a resource reduced to what the parameter fields asks for, as in
// "nextPageToken,items(name,owner/entity)"; "" or "*" asks for all.
// https://cloud.google.com/storage/docs/json_api#partial-response
func selected(whole any, fields string) any {
	if fields == "" || fields == "*" {
		return whole
	}
	encoded, err := json.Marshal(whole)
	if err != nil {
		return whole
	}
	var plain any
	if err := json.Unmarshal(encoded, &plain); err != nil {
		return whole
	}
	wanted, _ := parseFields(fields)
	return wanted.of(plain)
}

// mask is a tree of names; an empty one is everything below.
type mask map[string]mask

// parseFields reads up to the end or a closing parenthesis, and returns what follows.
func parseFields(s string) (m mask, rest string) {
	m = mask{}
	for s != "" && s[0] != ')' {
		end := strings.IndexAny(s, ",()/")
		if end < 0 {
			end = len(s)
		}
		name, below := s[:end], mask{}
		s = s[end:]
		switch {
		case strings.HasPrefix(s, "("):
			below, s = parseFields(s[1:])
			s = strings.TrimPrefix(s, ")")
		case strings.HasPrefix(s, "/"):
			below, s = parsePath(s[1:])
		}
		m[name] = below
		s = strings.TrimPrefix(s, ",")
	}
	return m, s
}

// parsePath reads one field that is named by a path.
func parsePath(s string) (m mask, rest string) {
	end := strings.IndexAny(s, ",)")
	if end < 0 {
		end = len(s)
	}
	m, _ = parseFields(s[:end])
	return m, s[end:]
}

func (m mask) of(value any) any {
	if len(m) == 0 {
		return value
	}
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = m.of(value[i])
		}
	case map[string]any:
		for key := range value {
			below, wanted := m[key]
			if _, all := m["*"]; !wanted && !all {
				delete(value, key)
				continue
			}
			value[key] = below.of(value[key])
		}
	}
	return value
}
