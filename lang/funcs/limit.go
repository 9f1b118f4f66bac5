package funcs

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/syntax"
)

// Limits on what functions return. Evaluating an expression, for review too, must
// not exhaust memory or time.
const (
	maxText         = files.MaxDataSize // bytes of one string
	maxElements     = 1_000_000         // of one collection
	maxNumberBits   = 1 << 16           // of a number's exponent: it has at most 20,000 digits
	maxDigits       = 10_000            // that parseint reads
	maxPatternSteps = 1 << 26           // steps of a pattern's program times characters that it reads
	maxNestedBytes  = 1 << 30           // size of a JSON text times its depth
	maxYAMLBrackets = 20_000            // the parser takes quadratic time for nested ones
)

func errTooLong() error {
	return fmt.Errorf("the result would be longer than %d MiB", maxText>>20)
}

func errTooMany() error {
	return fmt.Errorf("the result would have more than %d elements", maxElements)
}

// textOf returns an argument's text, if it is known.
func textOf(args []cty.Value, i int) (string, bool) {
	if i >= len(args) {
		return "", false
	}
	v, _ := args[i].Unmark()
	if v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return "", false
	}
	return v.AsString(), true
}

// iterable reports whether the elements of an unmarked value can be visited.
func iterable(v cty.Value) bool { return v.IsKnown() && !v.IsNull() && v.CanIterateElements() }

func isKnownNumber(v cty.Value) bool { return v.Type() == cty.Number && v.IsKnown() && !v.IsNull() }

// checkNumbers rejects numbers whose digits would fill the memory.
func checkNumbers(args []cty.Value) error {
	for _, arg := range args {
		if v, _ := arg.Unmark(); isKnownNumber(v) {
			if _, err := digits(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// digits estimates how long a number is when it is written out.
func digits(v cty.Value) (int, error) {
	f := v.AsBigFloat()
	if f.IsInf() {
		return len("Infinity"), nil
	}
	bits := max(f.MantExp(nil), -f.MantExp(nil))
	if bits > maxNumberBits {
		return 0, fmt.Errorf("a number is too large or too close to zero: its exponent has more than %d bits", maxNumberBits)
	}
	return bits/3 + int(f.Prec())/3 + 2, nil
}

// weigh estimates how long a value is when it is written as JSON or YAML.
func weigh(v cty.Value) (int, error) {
	w := weighing{}
	err := w.add(v, 0)
	return w.size, err
}

type weighing struct {
	size int
}

func (w *weighing) add(v cty.Value, depth int) error {
	v, _ = v.Unmark()
	w.size += 2 * (depth + 1)
	typ := v.Type()
	switch {
	case v.IsNull() || !v.IsKnown():
		w.size += len("null")
	case typ == cty.String:
		text := v.AsString()
		if !utf8.ValidString(text) { // the YAML encoder never ends with it
			return errors.New("a string is not UTF-8 text")
		}
		w.size += len(text)
	case typ == cty.Number:
		n, err := digits(v)
		if err != nil {
			return err
		}
		w.size += n
	case iterable(v):
		for it := v.ElementIterator(); it.Next(); {
			key, item := it.Element()
			if key.Type() == cty.String && key.IsKnown() && !typ.IsSetType() {
				w.size += len(key.AsString())
			}
			if err := w.add(item, depth+1); err != nil {
				return err
			}
		}
	}
	if w.size > maxText {
		return errTooLong()
	}
	return nil
}

// limitWeight bounds what is written out.
func limitWeight(args []cty.Value) error {
	for _, arg := range args {
		if _, err := weigh(arg); err != nil {
			return err
		}
	}
	return nil
}

// limitFormat bounds what a format asks for: its widths, and its arguments as
// often as it shows them. A list argument of formatlist counts by its elements.
func limitFormat(args []cty.Value) error {
	format, ok := textOf(args, 0)
	if !ok {
		return nil
	}
	largest, times := 0, 1
	for _, arg := range args[1:] {
		v, _ := arg.Unmark()
		items := []cty.Value{v}
		if iterable(v) && !v.Type().IsMapType() && !v.Type().IsObjectType() {
			items = append(v.AsValueSlice(), cty.EmptyTupleVal)
			times = max(times, len(items))
		}
		for _, item := range items {
			n, err := weigh(item)
			if err != nil {
				return err
			}
			largest = max(largest, n)
		}
	}
	size := 0
	for verb := range strings.SplitSeq(format, "%") {
		size += len(verb) + largest
		for _, width := range strings.SplitN(strings.TrimLeft(verb, " +#0-"), ".", 2) {
			n := 0
			for i := 0; i < len(width) && width[i] >= '0' && width[i] <= '9'; i++ {
				n = min(10*n+int(width[i]-'0'), maxText+1)
			}
			size += n
		}
		if size > maxText/times {
			return errTooLong()
		}
	}
	return nil
}

// limitIndent bounds what indent adds to each line.
func limitIndent(args []cty.Value) error {
	text, ok := textOf(args, 1)
	spaces, _ := args[0].Unmark()
	if !ok || !spaces.IsKnown() || spaces.IsNull() {
		return nil
	}
	if spaces.LessThan(cty.Zero).True() {
		return errors.New("the number of spaces must not be negative")
	}
	room := maxText / (1 + strings.Count(text, "\n"))
	if spaces.GreaterThan(cty.NumberIntVal(int64(room))).True() {
		return errTooLong()
	}
	return nil
}

// limitJoin bounds what separators add.
func limitJoin(args []cty.Value) error {
	separator, ok := textOf(args, 0)
	if !ok {
		return nil
	}
	size := 0
	for _, arg := range args[1:] {
		v, _ := arg.Unmark()
		if !iterable(v) {
			continue
		}
		n, err := weigh(v)
		if err != nil {
			return err
		}
		if size += n + v.LengthInt()*len(separator); size > maxText {
			return errTooLong()
		}
	}
	return nil
}

// limitSplit bounds the number of pieces.
func limitSplit(args []cty.Value) error {
	separator, _ := textOf(args, 0)
	if text, ok := textOf(args, 1); ok && strings.Count(text, separator) > maxElements {
		return errTooMany()
	}
	return nil
}

// limitParseInt bounds the length of a number's text.
func limitParseInt(args []cty.Value) error {
	if text, ok := textOf(args, 0); ok && len(text) > maxDigits {
		return fmt.Errorf("the number has more than %d digits", maxDigits)
	}
	return nil
}

// limitProduct bounds the number of combinations.
func limitProduct(args []cty.Value) error {
	total := 1
	for _, arg := range args {
		v, _ := arg.Unmark()
		if !iterable(v) || !v.Length().IsKnown() {
			continue
		}
		n := v.LengthInt()
		if n > 0 && total > maxElements/n {
			return errTooMany()
		}
		total *= n
	}
	return nil
}

// shape is the size of a value that was decoded.
type shape struct {
	elements int
}

// visit rejects a value with too many elements, too many levels or too large
// numbers. It stops early: elements that are the same may stand in many places.
func (s *shape) visit(v cty.Value, depth int) error {
	if s.elements++; s.elements > maxElements {
		return errTooMany()
	}
	if depth > syntax.MaxNesting {
		return fmt.Errorf("it is nested too deeply: more than %d levels", syntax.MaxNesting)
	}
	if isKnownNumber(v) {
		_, err := digits(v)
		return err
	}
	if !iterable(v) {
		return nil
	}
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if err := s.visit(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// limitLeaves bounds the number of elements of all nested sequences, of which
// the same one may be part many times.
func limitLeaves(args []cty.Value) error {
	n := 0
	var count func(v cty.Value) error
	count = func(v cty.Value) error {
		v, _ = v.Unmark()
		if n++; n > maxElements {
			return errTooMany()
		}
		if t := v.Type(); !iterable(v) || t.IsMapType() || t.IsObjectType() {
			return nil
		}
		for it := v.ElementIterator(); it.Next(); {
			_, item := it.Element()
			if err := count(item); err != nil {
				return err
			}
		}
		return nil
	}
	return count(args[0])
}

// limitJSON bounds the depth and the elements of a JSON text before it is
// parsed, which recurses and reads the text once for each level.
func limitJSON(args []cty.Value) error {
	text, ok := textOf(args, 0)
	if !ok {
		return nil
	}
	depth, deepest, elements := 0, 0, 0
	for _, c := range syntax.JSONStructure(text) {
		switch c {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		case ',':
			elements++
		}
	}
	switch {
	case deepest > syntax.MaxNesting || deepest*len(text) > maxNestedBytes:
		return fmt.Errorf("it is nested too deeply: %d levels in %d bytes", deepest, len(text))
	case elements > maxElements:
		return errTooMany()
	}
	return nil
}

// limitYAML bounds the depth and the elements of a YAML text before it is
// parsed. Brackets may be part of any text in it, so all of them count.
func limitYAML(args []cty.Value) error {
	text, ok := textOf(args, 0)
	if !ok {
		return nil
	}
	if strings.Count(text, "[")+strings.Count(text, "{") > maxYAMLBrackets {
		return fmt.Errorf("it has more than %d brackets; write it as JSON, for jsondecode", maxYAMLBrackets)
	}
	if strings.Count(text, "\n")+strings.Count(text, ",") > maxElements {
		return errTooMany()
	}
	for line := range strings.Lines(text) {
		levels := len(line) - len(strings.TrimLeft(line, " "))
		for _, indicator := range []string{"- ", "? ", ": ", "-\t", "?\t", ":\t"} {
			levels += strings.Count(line, indicator)
		}
		if levels > maxYAMLBrackets {
			return fmt.Errorf("a line may be nested too deeply: more than %d levels", maxYAMLBrackets)
		}
	}
	return nil
}

// limitCSV bounds the number of cells.
func limitCSV(args []cty.Value) error {
	if text, ok := textOf(args, 0); ok && strings.Count(text, ",")+strings.Count(text, "\n") > maxElements {
		return errTooMany()
	}
	return nil
}
