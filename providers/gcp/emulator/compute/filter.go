package compute

import (
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// listFilter is what a list is filtered by: all of its terms hold.
// https://cloud.google.com/compute/docs/reference/rest/v1/instances/aggregatedList
type listFilter []filterTerm

// filterTerm is "labels.k=v".
type filterTerm struct {
	path  []string
	op    filterOp
	value string
	match *regexp.Regexp // of eq and ne
}

// filterOp is a closed set of comparisons.
type filterOp string

const (
	filterIs       filterOp = "="
	filterIsNot    filterOp = "!="
	filterHas      filterOp = ":"
	filterMatch    filterOp = "eq"
	filterMatchNot filterOp = "ne"
)

// parseListFilter reads terms that are joined by AND, by parentheses or by nothing.
func parseListFilter(text string) (listFilter, error) {
	tokens, err := filterTokens(text)
	if err != nil {
		return nil, err
	}
	tokens = slices.DeleteFunc(tokens, func(t string) bool { return t == "(" || t == ")" || t == "AND" })
	if slices.Contains(tokens, "OR") || slices.Contains(tokens, "NOT") || len(tokens)%3 != 0 {
		return nil, invalid("Invalid value for field 'filter': '%s'. Invalid list filter expression.", text)
	}
	var f listFilter
	for term := range slices.Chunk(tokens, 3) {
		t := filterTerm{path: strings.Split(term[0], "."), op: filterOp(term[1]), value: strings.Trim(term[2], `"'`)}
		switch t.op {
		case filterIs, filterIsNot, filterHas:
		case filterMatch, filterMatchNot:
			if t.match, err = regexp.Compile("^(?:" + t.value + ")$"); err != nil {
				return nil, invalid("Invalid value for field 'filter': '%s'. %v", text, err)
			}
		default:
			return nil, invalid("Invalid value for field 'filter': '%s'. Unknown operator %s.", text, t.op)
		}
		f = append(f, t)
	}
	return f, nil
}

func filterTokens(text string) ([]string, error) {
	token := regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|!=|[()=:<>]|[^\s()=:<>!"']+)`)
	var tokens []string
	for rest := text; strings.TrimSpace(rest) != ""; {
		found := token.FindStringSubmatch(rest)
		if found == nil {
			return nil, invalid("Invalid value for field 'filter': '%s'. Invalid list filter expression.", text)
		}
		tokens, rest = append(tokens, found[1]), rest[len(found[0]):]
	}
	return tokens, nil
}

func (f listFilter) of(m proto.Message) bool {
	return !slices.ContainsFunc(f, func(t filterTerm) bool { return !t.of(m) })
}

func (t filterTerm) of(m proto.Message) bool {
	values := valuesAt(m.ProtoReflect(), t.path)
	switch t.op {
	case filterIs:
		return slices.Contains(values, t.value)
	case filterIsNot:
		return !slices.Contains(values, t.value)
	case filterHas:
		return slices.ContainsFunc(values, func(v string) bool { return t.value == "*" || strings.Contains(v, t.value) })
	case filterMatch:
		return slices.ContainsFunc(values, t.match.MatchString)
	case filterMatchNot:
		return !slices.ContainsFunc(values, t.match.MatchString)
	}
	return false
}

// valuesAt are the values of the field that a path of JSON names leads to, of all
// elements where a list is on the way.
func valuesAt(m protoreflect.Message, path []string) []string {
	field := m.Descriptor().Fields().ByJSONName(path[0])
	if field == nil || !m.Has(field) {
		return nil
	}
	value, rest := m.Get(field), path[1:]
	switch {
	case field.IsMap():
		entry := value.Map().Get(protoreflect.ValueOfString(strings.Join(rest, ".")).MapKey())
		if !entry.IsValid() {
			return nil
		}
		return []string{entry.String()}
	case field.IsList():
		var all []string
		for i := range value.List().Len() {
			all = append(all, valuesOf(field, value.List().Get(i), rest)...)
		}
		return all
	}
	return valuesOf(field, value, rest)
}

func valuesOf(field protoreflect.FieldDescriptor, value protoreflect.Value, rest []string) []string {
	switch {
	case field.Message() != nil && len(rest) > 0:
		return valuesAt(value.Message(), rest)
	case field.Enum() != nil:
		return []string{string(field.Enum().Values().ByNumber(value.Enum()).Name())}
	}
	return []string{value.String()}
}
