package funcs

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

func stringFunctions() []libraryFunction {
	return append(patternFunctions(), []libraryFunction{
		{
			name: "chomp", text: "A string without the newlines at its end.", returns: "string", fn: stdlib.ChompFunc,
			params: []string{"str: the string"}, example: `chomp("hello\n\n")`,
		},
		{
			name: "endswith", text: "Whether a string ends with another.", returns: "bool", fn: stringTestFunc(strings.HasSuffix),
			params: []string{"str: the string", "suffix: what it may end with"}, example: `endswith("train.py", ".py")`,
		},
		{
			name: "format", text: "Values put into a text, as printf does.", returns: "string", fn: stdlib.FormatFunc, limit: limitFormat,
			params:  []string{"format: with %s, %d, %.2f, %05d, %q, %v, %[1]s and the like", "args: the values"},
			example: `format("step-%05d of %s", 42, "eval")`,
		},
		{
			name: "formatlist", text: "format for each element of its lists, which have one length; other values are repeated.", returns: "list(string)",
			fn: stdlib.FormatListFunc, limit: limitFormat,
			params:  []string{"format: as for format", "args: lists and values"},
			example: `formatlist("%s/worker-%d", "rl", [0, 1])`,
		},
		{
			name: "indent", text: "A text with spaces before each line but the first.", returns: "string", fn: stdlib.IndentFunc, limit: limitIndent,
			params: []string{"spaces: how many", "str: the text"}, example: `indent(2, "a:\n- 1\n- 2")`,
		},
		{
			name: "join", text: "The strings of lists, with a separator between them.", returns: "string", fn: stdlib.JoinFunc, limit: limitJoin,
			params: []string{"separator: what stands between", "lists: one list or more"}, example: `join(",", ["a", "b", "c"])`,
		},
		{
			name: "lower", text: "A string in lower case.", returns: "string", fn: stdlib.LowerFunc,
			params: []string{"str: the string"}, example: `lower("HELLO")`,
		},
		{
			name: "split", text: "The parts of a string between separators.", returns: "list(string)", fn: stdlib.SplitFunc, limit: limitSplit,
			params: []string{"separator: what stands between; with an empty one, every character is a part", "str: the string"}, example: `split(",", "a,b,c")`,
		},
		{
			name: "startswith", text: "Whether a string starts with another.", returns: "bool", fn: stringTestFunc(strings.HasPrefix),
			params: []string{"str: the string", "prefix: what it may start with"}, example: `startswith("gs://acme/data", "gs://")`,
		},
		{
			name: "strcontains", text: "Whether a string contains another.", returns: "bool", fn: stringTestFunc(strings.Contains),
			params: []string{"str: the string", "substr: what it may contain"}, example: `strcontains("hello world", "wor")`,
		},
		{
			name: "strlen", text: "The number of characters of a string; length does the same.", returns: "number", fn: stdlib.StrlenFunc,
			params: []string{"str: the string"}, example: `strlen("naïve")`,
		},
		{
			name: "strrev", text: "A string with its characters in reverse.", returns: "string", fn: stdlib.ReverseFunc,
			params: []string{"str: the string"}, example: `strrev("hello")`,
		},
		{
			name: "substr", text: "A part of a string.", returns: "string", fn: stdlib.SubstrFunc,
			params:  []string{"str: the string", "offset: characters before the part; counted from the end if negative", "length: characters of the part; -1 for all that follow"},
			example: `substr("hello world", 1, 4)`,
		},
		{
			name: "title", text: "A string with the first letter of each word in upper case.", returns: "string", fn: stdlib.TitleFunc,
			params: []string{"str: the string"}, example: `title("hello world")`,
		},
		{
			name: "trim", text: "A string without certain characters at its start and end.", returns: "string", fn: stdlib.TrimFunc,
			params: []string{"str: the string", "cutset: the characters"}, example: `trim("?!hello?!", "!?")`,
		},
		{
			name: "trimprefix", text: "A string without what it starts with.", returns: "string", fn: stdlib.TrimPrefixFunc,
			params: []string{"str: the string", "prefix: removed if the string starts with it"}, example: `trimprefix("gs://acme", "gs://")`,
		},
		{
			name: "trimspace", text: "A string without white space at its start and end.", returns: "string", fn: stdlib.TrimSpaceFunc,
			params: []string{"str: the string"}, example: `trimspace("  hello\n\n")`,
		},
		{
			name: "trimsuffix", text: "A string without what it ends with.", returns: "string", fn: stdlib.TrimSuffixFunc,
			params: []string{"str: the string", "suffix: removed if the string ends with it"}, example: `trimsuffix("train.py", ".py")`,
		},
		{
			name: "upper", text: "A string in upper case.", returns: "string", fn: stdlib.UpperFunc,
			params: []string{"str: the string"}, example: `upper("hello")`,
		},
	}...)
}

func patternFunctions() []libraryFunction {
	return []libraryFunction{
		{
			name: "regex", text: "The first match of a regular expression: a string, or what its groups matched as a list, or as an object if they have names. It is an error if nothing matches.", returns: "any",
			fn: stdlib.RegexFunc, limit: limitRegex,
			params:  []string{"pattern: in the syntax of RE2", "string: the text to search"},
			example: `regex("(?P<name>[a-z]+)-(?P<step>[0-9]+)", "ckpt-1200").step`,
		},
		{
			name: "regexall", text: "All matches of a regular expression, each as regex returns it.", returns: "list(any)", fn: stdlib.RegexAllFunc, limit: limitRegexAll,
			params: []string{"pattern: in the syntax of RE2", "string: the text to search"}, example: `regexall("[a-z]+", "1234abcd5678efgh9")`,
		},
		{
			name: "regexreplace", text: "A string with all matches of a regular expression replaced.", returns: "string", fn: stdlib.RegexReplaceFunc, limit: limitRegexReplace,
			params:  []string{"str: the string", "pattern: in the syntax of RE2", "replace: what is put in; $1 and ${name} are what groups matched"},
			example: `regexreplace("a1b22", "[0-9]+", "-")`,
		},
		{
			name: "replace", text: "A string with all occurrences of another replaced. One between slashes is a regular expression.", returns: "string", fn: replaceFunc(), limit: limitReplace,
			params:  []string{"str: the string", "substr: what is replaced, or /PATTERN/", "replace: what is put in; for a pattern, $1 and $name are what groups matched"},
			example: `replace("hello world", "/w.*d/", "everybody")`,
		},
	}
}

// stringFunc makes a function from one string to another.
func stringFunc(of func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			s, err := of(args[0].AsString())
			if err != nil {
				return cty.NilVal, function.NewArgError(0, err)
			}
			return cty.StringVal(s), nil
		},
	})
}

func stringTestFunc(test func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.Bool),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(test(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

func replaceFunc() function.Function {
	return function.New(&function.Spec{
		Params:       []function.Parameter{{Type: cty.String}, {Type: cty.String}, {Type: cty.String}},
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, old, with := args[0].AsString(), args[1].AsString(), args[2].AsString()
			pattern, is := asPattern(old)
			if !is {
				return cty.StringVal(strings.ReplaceAll(text, old, with)), nil
			}
			re, err := regexp.Compile(pattern)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, fmt.Errorf("between the slashes is no regular expression: %w", err))
			}
			return cty.StringVal(re.ReplaceAllString(text, with)), nil
		},
	})
}
