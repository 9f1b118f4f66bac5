package codec

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// within adds a step in front of the path of an error of this package.
func within(err error, step string) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Path: step + e.Path, Problem: e.Problem}
	}
	return err
}

func indexStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

// keyStep is ".lr", or ["two words"] for a key that is no plain name.
func keyStep(key string) string {
	plain := key != "" && strings.IndexFunc(key, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	if plain {
		return "." + key
	}
	return "[" + strconv.Quote(key) + "]"
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// mixedKeys are the keys of a map that has ints among them: those first, then the strings.
func mixedKeys(m map[any]any) []any {
	return slices.SortedFunc(maps.Keys(m), func(a, b any) int {
		switch a := a.(type) {
		case int64:
			if b, ok := b.(int64); ok {
				return cmp.Compare(a, b)
			}
		case uint64:
			if b, ok := b.(uint64); ok {
				return cmp.Compare(a, b)
			}
		case string:
			if b, ok := b.(string); ok {
				return cmp.Compare(a, b)
			}
		}
		return cmp.Compare(keyRank(a), keyRank(b))
	})
}

func keyRank(key any) int {
	switch key.(type) {
	case int64:
		return 0
	case uint64: // above every int64
		return 1
	}
	return 2
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// shapeText is a shape as numpy and Python's lists print it: [2, 3].
func shapeText(shape []int) string {
	return strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")
}
