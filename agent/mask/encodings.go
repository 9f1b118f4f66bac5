package mask

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// isWord reports whether a value is too common a word to be hidden.
func isWord(value string) bool {
	switch strings.ToLower(value) {
	case "true", "false", "null", "none":
		return true
	}
	return false
}

// leastLine and leastMember are the lengths below which a line of a value, or a
// string in the JSON that a value is, is no secret by itself.
const (
	leastLine   = 8
	leastMember = 8
)

// parts are a value and what of it is secret by itself: the lines of a key, the
// strings of a JSON document, the password of a URL.
func parts(value string) []string {
	if len(value) < Least || isWord(value) {
		return nil
	}
	found := []string{value}
	if trimmed := strings.TrimSpace(value); trimmed != value {
		found = append(found, trimmed)
	}
	found = append(found, lines(value)...)
	found = append(found, members(value)...)
	if password := password(value); len(password) >= Least {
		found = append(found, password)
	}
	return slices.DeleteFunc(found, isWord)
}

// lines are the lines of a value that has several, but for those that frame a key.
func lines(value string) []string {
	if !strings.Contains(strings.TrimSpace(value), "\n") {
		return nil
	}
	var found []string
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if len(line) >= leastLine && !strings.HasPrefix(line, "-----") {
			found = append(found, line)
		}
	}
	return found
}

// members are the strings in the JSON object or list that a value is.
func members(value string) []string {
	trimmed := strings.TrimSpace(value)
	if !strings.HasPrefix(trimmed, "{") && !strings.HasPrefix(trimmed, "[") {
		return nil
	}
	var document any
	if json.Unmarshal([]byte(trimmed), &document) != nil {
		return nil
	}
	var found []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) >= leastMember {
				found = append(found, v)
				found = append(found, lines(v)...)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for _, item := range v {
				walk(item)
			}
		}
	}
	walk(document)
	return found
}

// password is that of a value which is a URL with one.
func password(value string) string {
	if !strings.Contains(value, "://") {
		return ""
	}
	u, err := url.Parse(value)
	if err != nil {
		return ""
	}
	secret, _ := u.User.Password()
	return secret
}

// mostEncoded is the size in bytes of a value beyond which only its plainest
// encodings are looked for: a pattern for each takes too much memory.
const mostEncoded = 8 << 10

// encodings are the ways in which programs write a value: in clear, within
// strings of JSON, of shells, of Go and Python, of URLs and of HTML; each of them
// as it is, and in base64 wherever that begins; and in clear as hex.
func encodings(value string) []string {
	if len(value) > mostEncoded {
		return append([]string{value, escapedJSON(value, false)}, inBase64(value)...)
	}
	texts := []string{
		value, escapedJSON(value, false), escapedJSON(value, true), asciiJSON(value, false), asciiJSON(value, true),
		strings.ReplaceAll(escapedJSON(value, false), "/", `\/`),
		unquoted(strconv.Quote(value)), unquoted(strconv.QuoteToASCII(value)),
		repr(value, '\''), repr(value, '"'),
		strings.ReplaceAll(value, `'`, `'\''`), strings.ReplaceAll(value, `'`, `'"'"'`), backslashed(value, isShellSafe), backslashed(value, isQuotedSafe),
		html.EscapeString(value), strings.NewReplacer("&#39;", "&#x27;", "&#34;", "&quot;").Replace(html.EscapeString(value)),
	}
	for _, safe := range []string{"", "/", "!'()*", "$&+,;=", "$&+=:@", "$&+=:@/;,!'()*"} {
		for _, upper := range []bool{true, false} {
			escaped := percent(value, safe, upper)
			texts = append(texts, escaped, strings.ReplaceAll(escaped, "%20", "+"))
		}
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	all := slices.Clone(texts)
	for _, text := range texts {
		all = append(all, inBase64(text)...)
	}
	digits := hex.EncodeToString([]byte(value))
	return append(all, digits, strings.ToUpper(digits))
}

// escapedJSON is what stands between the quotes of a string in JSON; with html
// as Go writes it.
func escapedJSON(value string, html bool) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(html)
	if enc.Encode(value) != nil {
		return value // strings encode
	}
	return unquoted(strings.TrimSuffix(out.String(), "\n"))
}

// asciiJSON is escapedJSON of programs that write ASCII only.
func asciiJSON(value string, upper bool) string {
	format := `\u%04x`
	if upper {
		format = `\u%04X`
	}
	var out strings.Builder
	for _, r := range escapedJSON(value, false) {
		if r < 0x7f {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, format, unit)
		}
	}
	return out.String()
}

// repr is what stands between the quotes of a string as Python shows it.
func repr(value string, quote rune) string {
	var out strings.Builder
	for _, r := range value {
		switch {
		case r == quote, r == '\\':
			out.WriteRune('\\')
			out.WriteRune(r)
		case r == '\n':
			out.WriteString(`\n`)
		case r == '\r':
			out.WriteString(`\r`)
		case r == '\t':
			out.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&out, `\x%02x`, r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func isShellSafe(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 0x7e || r < ' ' || strings.ContainsRune("_-./:=@%+,", r)
}

// isQuotedSafe reports whether a shell needs no backslash before a character
// within double quotes.
func isQuotedSafe(r rune) bool { return !strings.ContainsRune("\"\\$`", r) }

func backslashed(value string, safe func(rune) bool) string {
	var out strings.Builder
	for _, r := range value {
		if !safe(r) {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// percent is a value as part of a URL. Letters, digits and "-_.~" stand as they
// are, and what is in safe.
func percent(value, safe string, upper bool) string {
	format := "%%%02x"
	if upper {
		format = "%%%02X"
	}
	var out strings.Builder
	for _, c := range []byte(value) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_.~", c) >= 0, strings.IndexByte(safe, c) >= 0:
			out.WriteByte(c)
		default:
			fmt.Fprintf(&out, format, c)
		}
	}
	return out.String()
}

// inBase64 is what a text leaves in base64, wherever it begins within what is
// encoded: after none, one or two bytes of a group of three. Digits that what
// stands beside the text has a part in are left out; where it ends what is
// encoded, its last digit is known.
func inBase64(text string) []string {
	var all []string
	for before := range 3 {
		data := append(make([]byte, before), text...)
		from := (8*before + 5) / 6 // digits with bits of what stands before
		to := 8 * len(data) / 6    // digits that are whole
		for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			digits := alphabet.EncodeToString(data)
			if from < to {
				all = append(all, digits[from:to])
			}
			if to < len(digits) {
				all = append(all, digits[from:], digits[from:]+strings.Repeat("=", (4-len(digits)%4)%4))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func unquoted(text string) string { return text[1 : len(text)-1] }
