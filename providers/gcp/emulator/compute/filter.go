package compute

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
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

func (f listFilter) of(resource any) bool {
	return !slices.ContainsFunc(f, func(t filterTerm) bool { return !t.of(resource) })
}

func (t filterTerm) of(resource any) bool {
	values := valuesAt(reflect.ValueOf(resource), t.path)
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

// valuesAt are the values that a path of JSON names leads to, of all elements where a
// list is on the way.
func valuesAt(v reflect.Value, path []string) []string {
	switch v.Kind() {
	case reflect.Invalid:
		return nil
	case reflect.Pointer, reflect.Interface:
		return valuesAt(v.Elem(), path)
	case reflect.Slice:
		var all []string
		for i := range v.Len() {
			all = append(all, valuesAt(v.Index(i), path)...)
		}
		return all
	}
	switch {
	case len(path) == 0:
		return []string{fmt.Sprint(v.Interface())}
	case v.Kind() == reflect.Struct:
		if field := fieldOf(v, path[0]); field.IsValid() && !field.IsZero() {
			return valuesAt(field, path[1:])
		}
	case v.Type() == reflect.TypeFor[object]():
		return valuesAt(v.MapIndex(reflect.ValueOf(path[0])), path[1:])
	case v.Kind() == reflect.Map:
		return valuesAt(v.MapIndex(reflect.ValueOf(strings.Join(path, "."))), nil)
	}
	return nil
}
