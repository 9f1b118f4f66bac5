package format

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// sourceWriter writes random source: mostly in the grammar, with space, newlines
// and comments wherever they may stand, and now and then something wrong.
type sourceWriter struct {
	t          *rapid.T
	out        strings.Builder
	left       int  // how deep it may still go
	attributes int  // so far
	templates  int  // around here
	odd        bool // whether there are rare forms too, and mistakes
}

// pick is one of some texts; those after odd are picked only where w is.
func (w *sourceWriter) pick(of ...string) string {
	if common := slices.Index(of, odd); common >= 0 && !w.odd {
		of = of[:common]
	}
	return rapid.SampledFrom(of).Draw(w.t, "text")
}

const odd = "odd:"

func (w *sourceWriter) chance(percent int) bool {
	return rapid.IntRange(0, 99).Draw(w.t, "chance") < percent
}

func (w *sourceWriter) put(texts ...string) {
	for _, text := range texts {
		w.out.WriteString(text)
		switch n := rapid.IntRange(0, 19).Draw(w.t, "space"); {
		case n < 8:
			w.out.WriteString(" ")
		case n == 8:
			w.out.WriteString("  \t ")
		case n == 9:
			w.out.WriteString("/* c é */")
		}
	}
}

// brk may break a line, where the grammar takes that for space.
func (w *sourceWriter) brk() {
	if w.chance(15) {
		w.out.WriteString(w.pick("\n", "\n\n", "# c\n", "  // ü\n", " \n \t"))
	}
}

func (w *sourceWriter) name() {
	w.put(w.pick("a", "in", "if", "name", "x-y", "long_name_9", "list", "type", "null", "e9", odd, "é", "for"))
}

func (w *sourceWriter) template() {
	w.templates++
	defer func() { w.templates-- }()
	w.out.WriteString(`"`)
	for range rapid.IntRange(0, 3).Draw(w.t, "parts") {
		if w.chance(40) && w.left > 0 {
			w.out.WriteString(w.pick("${", odd, "${~"))
			w.left--
			w.brk()
			w.expression()
			w.left++
			w.brk()
			w.out.WriteString(w.pick("}", odd, "~}"))
			continue
		}
		w.out.WriteString(w.pick("x", " y ", `\n`, `\"`, `\\`, "$", "%", "$$", "%%d", "$${", "%%{", "#", "//", "{", "}", "\t", "é ", "e\u0301",
			"\U0001F468\u200d\U0001F469", odd, `\u00e9`, `\q`, "%{if a}b%{endif}", "$$${", "\x80"))
	}
	w.put(`"`)
}

func (w *sourceWriter) heredoc() {
	marker := w.pick("EOT", "E-1")
	w.out.WriteString(w.pick("<<", "<<-") + marker + "\n")
	for range rapid.IntRange(0, 4).Draw(w.t, "lines") {
		w.out.WriteString(w.pick("", "  "))
		if w.chance(30) && w.left > 0 {
			w.out.WriteString("${")
			w.left--
			w.templates++
			w.expression()
			w.templates--
			w.left++
			w.out.WriteString("}")
		}
		w.out.WriteString(w.pick("", "text", " EOT", "$x", "100%", "$${", "é", `\q`, "}", odd, "%{ if a }", "EOT "))
		w.out.WriteString("\n")
	}
	w.out.WriteString(marker + w.pick("\n", " \n"))
}

func (w *sourceWriter) list(open, end string, item func()) {
	w.put(open)
	w.brk()
	for range rapid.IntRange(0, 3).Draw(w.t, "items") {
		item()
		w.brk()
		w.put(",")
		w.brk()
	}
	if w.chance(60) {
		item()
		w.brk()
	}
	w.put(end)
}

func (w *sourceWriter) expression() {
	w.left--
	defer func() { w.left++ }()
	if w.left <= 0 {
		w.put(w.pick("1", "x", "true", `"s"`))
		return
	}
	w.term()
	for w.chance(25) {
		w.put(w.pick("+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||"))
		w.term()
	}
	if w.chance(8) {
		w.put("?")
		w.expression()
		w.put(":")
		w.expression()
	}
}

func (w *sourceWriter) term() {
	for w.chance(12) {
		w.put(w.pick("-", "!"))
	}
	switch rapid.IntRange(0, 11).Draw(w.t, "term") {
	case 0, 1:
		w.put(w.pick("0", "1", "12.5", "1e3", "1e-4", "2E+07", odd, "1.", "1.e4", "1e9999", "3x"))
	case 2, 3:
		w.template()
	case 4:
		w.list("[", "]", w.expression)
	case 5:
		w.object()
	case 6:
		w.put(w.pick("(", "("))
		w.brk()
		w.expression()
		w.brk()
		w.put(")")
	case 7:
		w.out.WriteString(w.pick("f", "a::b", "max"))
		w.list("(", w.pick(")", odd, "...)"), w.expression)
	case 8:
		w.forExpression()
	case 9:
		if w.chance(30) && (w.odd || w.templates == 0) {
			w.heredoc()
			return
		}
		w.name()
	default:
		w.name()
	}
	for w.chance(20) {
		w.put(w.pick(".a", ".in", "[*]", "[0]", `["k"]`, ". b", "[1+ x]", odd, ".0", ".*", ".1.5", "[]"))
	}
}

func (w *sourceWriter) object() {
	w.put("{")
	for range rapid.IntRange(0, 3).Draw(w.t, "items") {
		w.brk()
		if w.chance(70) {
			w.name()
		} else {
			w.put("(")
			w.expression()
			w.put(")")
		}
		w.put(w.pick("=", "=", ":"))
		w.expression()
		w.out.WriteString(w.pick(",", ",", "\n", " # c\n", ",\n"))
	}
	w.put("}")
}

func (w *sourceWriter) forExpression() {
	open := w.pick("[", "{")
	w.put(open, "for ")
	w.name()
	if w.chance(40) {
		w.put(",")
		w.name()
	}
	w.out.WriteString(" in ")
	w.expression()
	w.brk()
	w.put(":")
	w.expression()
	if open == "{" {
		w.put("=>")
		w.expression()
		w.put(w.pick("", "", "..."))
	}
	if w.chance(30) {
		w.out.WriteString(" if ")
		w.expression()
	}
	w.brk()
	w.put(map[string]string{"[": "]", "{": "}"}[open])
}

func (w *sourceWriter) body(depth int) {
	for range rapid.IntRange(0, 5).Draw(w.t, "items") {
		switch n := rapid.IntRange(0, 9).Draw(w.t, "item"); {
		case n == 0:
			w.out.WriteString(w.pick("\n", "# c\n", "  // c\n", "/* a\n b */\n", "/* c */ # d\n", "\n\n \n"))
		case n < 4 && depth > 0:
			w.put(w.pick("job", "variable", "in", "job"), w.pick(` "a"`, ` "a" "b"`, "", odd, ` "a${x}"`, " b", ` "é"`), "{")
			if w.chance(20) {
				w.put("a", "=")
				w.expression()
			} else if w.chance(90) {
				w.out.WriteString(w.pick("\n", "# c\n"))
				w.body(depth - 1)
			}
			w.put("}")
			w.out.WriteString(w.pick("\n", "# c\n", "\n\n"))
		default:
			w.attributes++
			w.put(w.pick("a", "in", "name", "x-y", "long_name_", odd, "é", "for")+strconv.Itoa(w.attributes), "=")
			w.expression()
			w.out.WriteString(w.pick("\n", "\n", "\n", " # comment\n", "// ü\n", "\n\n", odd, "\r\n", " "))
		}
	}
}

// TestFormatIsTheLibrarys holds Format against the libraries on random source.
func TestFormatIsTheLibrarys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &sourceWriter{t: t, left: rapid.IntRange(1, 4).Draw(t, "left"), odd: rapid.IntRange(0, 3).Draw(t, "odd") == 0}
		w.body(3)
		if w.odd && w.chance(10) {
			w.out.WriteString(w.pick("a = 1", "  ", "}", "\x00", "\xff\n", "a = ;\n"))
		}
		checkFormat(t, []byte(w.out.String()))
	})
}
