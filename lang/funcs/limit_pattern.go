package funcs

import (
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
)

// limitPattern bounds the work of a pattern on a text. With all, the pattern
// searches every match, each time maybe to the end of the text.
func limitPattern(pattern, text string, all bool) (matches int, err error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, nil // the function itself reports what is wrong
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, nil
	}
	steps := len(program.Inst)
	if len(text) > maxPatternSteps/steps {
		return 0, errPattern()
	}
	if !all || len(text) <= maxPatternSteps/steps/max(len(text), 1) {
		return len(text) + 1, nil
	}
	return countMatches(regexp.MustCompile(pattern), text, maxPatternSteps/steps, maxElements)
}

func errPattern() error {
	return errors.New("the pattern takes too many steps for a text of this length")
}

// countMatches counts the matches of a pattern, most of them at most, reading no
// more runes than budget. The matches after the first are found without what is before them,
// which is near enough.
func countMatches(re *regexp.Regexp, text string, budget, most int) (int, error) {
	r := &countingReader{budget: budget}
	for n := 0; ; n++ {
		r.text, r.at = text, 0
		found := re.FindReaderIndex(r)
		switch {
		case r.budget < 0:
			return 0, errPattern()
		case found == nil:
			return n, nil
		case n >= most:
			return 0, errTooMany()
		}
		end := found[1]
		if found[0] == found[1] {
			_, size := utf8.DecodeRuneInString(text[end:])
			end += size
		}
		if end >= len(text) {
			return n + 1, nil
		}
		text = text[end:]
	}
}

// countingReader reads runes until its budget is spent.
type countingReader struct {
	text       string
	at, budget int
}

var _ io.RuneReader = (*countingReader)(nil)

// ReadRune implements io.RuneReader.
func (r *countingReader) ReadRune() (rune, int, error) {
	if r.budget--; r.budget < 0 || r.at >= len(r.text) {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(r.text[r.at:])
	r.at += size
	return c, size, nil
}

// limitRegex bounds regex, limitRegexAll regexall.
func limitRegex(args []cty.Value) error { return limitRegexOf(args, false) }

func limitRegexAll(args []cty.Value) error { return limitRegexOf(args, true) }

func limitRegexOf(args []cty.Value, all bool) error {
	pattern, ok := textOf(args, 0)
	text, known := textOf(args, 1)
	if !ok || !known {
		return nil
	}
	_, err := limitPattern(pattern, text, all)
	return err
}

// limitReplace bounds replace, whose second argument is a pattern if it stands
// between slashes, and what it puts in.
func limitReplace(args []cty.Value) error {
	text, ok := textOf(args, 0)
	old, known := textOf(args, 1)
	with, given := textOf(args, 2)
	if !ok || !known || !given {
		return nil
	}
	if pattern, is := asPattern(old); is {
		return limitReplacement(pattern, text, with)
	}
	if n := strings.Count(text, old); len(with) > 0 && n > (maxText-min(len(text), maxText))/len(with) {
		return errTooLong()
	}
	return nil
}

// limitRegexReplace bounds regexreplace.
func limitRegexReplace(args []cty.Value) error {
	text, ok := textOf(args, 0)
	pattern, known := textOf(args, 1)
	with, given := textOf(args, 2)
	if !ok || !known || !given {
		return nil
	}
	return limitReplacement(pattern, text, with)
}

// limitReplacement bounds what is put in for the matches of a pattern: the text
// for each, and what $1 stands for, together no longer than the text.
func limitReplacement(pattern, text, with string) error {
	n, err := limitPattern(pattern, text, true)
	if err != nil {
		return err
	}
	if n*len(with) > maxText || (1+strings.Count(with, "$"))*len(text) > maxText {
		return errTooLong()
	}
	return nil
}

// asPattern returns what stands between the slashes.
func asPattern(s string) (string, bool) {
	if len(s) > 1 && strings.HasPrefix(s, "/") && strings.HasSuffix(s, "/") {
		return s[1 : len(s)-1], true
	}
	return "", false
}
