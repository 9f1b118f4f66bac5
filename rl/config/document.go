package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/schema"
)

// node is a section of the keys, or a key.
type node struct {
	key      *Key
	children map[string]*node
}

// tree is the keys as sections. roles has every role.
func tree() *node {
	root := &node{children: map[string]*node{}}
	add := func(path string, key Key) {
		at := root
		for name := range strings.SplitSeq(path, ".") {
			if at.children[name] == nil {
				at.children[name] = &node{children: map[string]*node{}}
			}
			at = at.children[name]
		}
		at.key = &key
	}
	for _, key := range Keys() {
		if !strings.Contains(key.Path, "*") {
			add(key.Path, key)
			continue
		}
		for _, role := range rl.Roles() {
			add(strings.ReplaceAll(key.Path, "*", string(role)), key)
		}
	}
	return root
}

// checkDocument returns what is wrong with the names and values of a document, each by itself.
func checkDocument(document map[string]any) []Problem { return checkSection("", tree(), document) }

func checkSection(at string, section *node, document map[string]any) []Problem {
	var problems []Problem
	for _, name := range slices.Sorted(maps.Keys(document)) {
		path, value := strings.TrimPrefix(at+"."+name, "."), document[name]
		known := section.children[name]
		switch {
		case known == nil && !isOpen(section, document):
			problems = append(problems, unknownKey(path, name, section))
		case known == nil || value == nil:
		case known.key != nil:
			key := *known.key
			if key.Kind == File && isOpen(section, document) {
				key.Kind = Text // the user's class reads it
			}
			if text := key.fault(value); text != "" {
				problems = append(problems, Problem{Path: path, Text: text})
			}
		default:
			inner, ok := value.(map[string]any)
			if !ok {
				problems = append(problems, Problem{Path: path, Text: "want an object, got " + shown(value)})
				continue
			}
			problems = append(problems, checkSection(path, known, inner)...)
		}
	}
	return problems
}

// isOpen reports whether a section has keys that only a class of the user knows.
func isOpen(section *node, document map[string]any) bool {
	for _, name := range []string{"type", "backend", "class"} {
		if text, ok := document[name].(string); ok && section.children[name] != nil && IsClass(text) {
			return true
		}
	}
	return false
}

func unknownKey(path, name string, section *node) Problem {
	names := slices.Sorted(maps.Keys(section.children))
	p := Problem{Path: path, Text: fmt.Sprintf("there is no key %q", name)}
	if near := schema.Nearest(name, names); near != "" {
		p.Fix = fmt.Sprintf("Did you mean %q?", near)
	} else {
		p.Fix = "There are " + strings.Join(names, ", ") + "."
	}
	return p
}

// fault is what is wrong with a value, "" if it fits.
func (k Key) fault(value any) string {
	wrong := fmt.Sprintf("want %s, got %s", k.wanted(), shown(value))
	switch k.Kind {
	case Text:
		if _, ok := value.(string); ok {
			return ""
		}
	case File:
		text, ok := value.(string)
		if ok && strings.Contains(text, "://") {
			return wrong + ", and object stores are not read"
		}
		if ok {
			return ""
		}
	case Place:
		text, ok := value.(string)
		if ok && (!strings.Contains(text, "://") || inBucket(text)) {
			return ""
		}
	case Flag:
		if _, ok := value.(bool); ok {
			return ""
		}
	case Any:
		if _, ok := value.(map[string]any); ok {
			return ""
		}
	case Whole, Number, Seconds:
		number, ok := value.(json.Number)
		if ok && k.holds(number) {
			return ""
		}
	case Texts:
		if isTexts(value) {
			return ""
		}
	case Word, Class:
		return k.wordFault(value, wrong)
	case Words:
		if _, one := value.(string); one {
			return k.wordFault(value, wrong)
		}
		if !isTexts(value) {
			return wrong
		}
		for _, item := range value.([]any) {
			if fault := k.wordFault(item, fmt.Sprintf("want %s, got %s", k.wanted(), shown(item))); fault != "" {
				return fault
			}
		}
		return ""
	}
	return wrong
}

func (k Key) wordFault(value any, wrong string) string {
	text, ok := value.(string)
	if !ok {
		return wrong
	}
	if slices.Contains(k.Words, text) || k.Kind == Class && isClassName(text) {
		return ""
	}
	if near := schema.Nearest(text, k.Words); near != "" {
		return fmt.Sprintf("%s. Did you mean %q?", wrong, near)
	}
	return wrong
}

// holds reports whether a number is within the key's bounds.
func (k Key) holds(number json.Number) bool {
	value, err := number.Float64()
	if err != nil || value < k.Low || k.Above && value == k.Low || k.High > 0 && value > k.High {
		return false
	}
	if k.Kind != Whole {
		return true
	}
	_, err = number.Int64()
	return err == nil
}

func (k Key) wanted() string {
	switch k.Kind {
	case Text:
		return "a string"
	case File:
		return "a path that every host of the run sees"
	case Place:
		return "a path that every host of the run sees, or gs://BUCKET/PREFIX"
	case Flag:
		return "true or false"
	case Any:
		return "an object"
	case Whole:
		return "a whole number" + k.bounds()
	case Number:
		return "a number" + k.bounds()
	case Seconds:
		return "a number of seconds" + k.bounds()
	case Texts:
		return "a list of strings"
	case Word, Class, Words:
	}
	return k.Type()
}

func isTexts(value any) bool {
	list, ok := value.([]any)
	return ok && !slices.ContainsFunc(list, func(item any) bool { _, text := item.(string); return !text })
}

// inBucket reports whether a text is gs://BUCKET/PREFIX. A prefix is the run's own.
func inBucket(text string) bool {
	bucket, prefix, slash := strings.Cut(strings.TrimPrefix(text, "gs://"), "/")
	return strings.HasPrefix(text, "gs://") && slash && bucket != "" && strings.Trim(prefix, "/") != ""
}

// isClassName reports whether a text is "module:Class".
func isClassName(text string) bool {
	module, class, colon := strings.Cut(text, ":")
	return colon && module != "" && class != "" && !strings.ContainsAny(text, " \t\n/") && !strings.Contains(class, ":")
}

// shown is a value in an error, short.
func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("%v", value)
	}
	if runes := []rune(string(text)); len(runes) > 60 {
		return string(runes[:60]) + "…"
	}
	return string(text)
}
