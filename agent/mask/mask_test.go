package mask

import (
	"bytes"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvgIBADANBgkqhkiG9w0BAQEFAASC\nBKgwggSkAgEAAoIBAQC7vbqajDw4o6gJ\nzZ9+/w==\n-----END PRIVATE KEY-----\n"

// hard is a value in which every encoding has something to escape.
const hard = `p@ss/w+rd"'<é😀>&\ $x%y`

func wrapped(s string, n int) string {
	var lines []string
	for len(s) > n {
		lines, s = append(lines, s[:n]), s[n:]
	}
	return strings.Join(append(lines, s), "\n")
}

func jsonOf(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// encoded are the ways in which other programs than this package write a value.
func encoded() map[string]func(string) string {
	std, raw, web := base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding
	return map[string]func(string) string{
		"plain":              func(s string) string { return s },
		"json":               func(s string) string { return jsonOf(s) },
		"query":              url.QueryEscape,
		"query in lower":     func(s string) string { return strings.ToLower(url.QueryEscape(s)) },
		"path":               url.PathEscape,
		"userinfo":           func(s string) string { return url.UserPassword("u", s).String() },
		"html":               html.EscapeString,
		"go quote":           strconv.Quote,
		"go ascii":           strconv.QuoteToASCII,
		"base64":             func(s string) string { return std.EncodeToString([]byte(s)) },
		"base64 raw":         func(s string) string { return raw.EncodeToString([]byte(s)) },
		"base64 url":         func(s string) string { return web.EncodeToString([]byte(s)) },
		"base64 after 1":     func(s string) string { return std.EncodeToString([]byte("x" + s + "tail")) },
		"base64 after 2":     func(s string) string { return std.EncodeToString([]byte("xy" + s + "tail")) },
		"base64 url after 2": func(s string) string { return web.EncodeToString([]byte("xy" + s + "tail")) },
		"basic":              func(s string) string { return std.EncodeToString([]byte("user:" + s)) },
		"base64 of json":     func(s string) string { return std.EncodeToString([]byte(jsonOf(map[string]string{"pw": s}))) },
		"wrapped base64":     func(s string) string { return wrapped(std.EncodeToString([]byte(strings.Repeat("x", 50)+s+"y")), 16) },
		"hex":                func(s string) string { return hex.EncodeToString([]byte(s)) },
		"hex in upper":       func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"split over lines":   func(s string) string { return wrapped(s, 3) },
		"split by returns":   func(s string) string { return strings.ReplaceAll(wrapped(s, 3), "\n", "\r\n") },
	}
}

func TestEveryEncodingIsHidden(t *testing.T) {
	for _, secret := range []string{"hunter2-and-more", "pass", "hard word", hard, pem} {
		set := New([]string{secret})
		for name, encode := range encoded() {
			written := encode(secret)
			if name == "query in lower" && strings.ToLower(secret) != secret {
				continue // it is another value
			}
			got := set.String("before\n" + written + "\nafter\n")
			if !strings.Contains(got, Marker) || !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "after\n") {
				t.Errorf("%q as %s %q: got %q", secret, name, written, got)
			}
			inside := strings.Trim(got, `"`)
			inside = strings.TrimSuffix(strings.TrimPrefix(inside, "before\n"), "after\n")
			if name == "plain" && strings.TrimSpace(inside) != Marker {
				t.Errorf("%q as %s: got %q, want nothing beside the marker", secret, name, got)
			}
		}
	}
}

// TestOtherPrograms compares with what a shell and Python make of values.
func TestOtherPrograms(t *testing.T) {
	const script = `
import base64, html, json, shlex, sys, urllib.parse
for s in sys.argv[1:]:
    for f in (repr, lambda s: json.dumps({"pw": s}), lambda s: repr({"pw": s}), urllib.parse.quote, urllib.parse.quote_plus, shlex.quote, html.escape,
              lambda s: urllib.parse.quote(s, safe=""), lambda s: base64.encodebytes(b"0123456789" * 9 + s.encode()).decode(),
              lambda s: base64.b64encode(json.dumps(s).encode()).decode(), lambda s: base64.urlsafe_b64encode(b"xy" + s.encode()).decode(), lambda s: s.encode().hex()):
        sys.stdout.buffer.write(f(s).encode() + b"\0")
`
	secrets := []string{"hunter2-and-more", `it's "x" & <y>/z`, "é and 😀", `back\slash$HOME`}
	out, err := exec.Command("python3", append([]string{"-c", script}, secrets...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("python3: %v: %s", err, out)
	}
	written := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(written) != 12*len(secrets) {
		t.Fatalf("python3 wrote %q", written)
	}
	for i, text := range written {
		if got := New(secrets[i/12 : i/12+1]).String(text); !strings.Contains(got, Marker) {
			t.Errorf("%q, way %d: got %q", secrets[i/12], i%12, got)
		}
	}
	for _, secret := range secrets {
		for _, flags := range []string{"-xc", "-c"} {
			out, err := exec.Command("bash", flags, `printf '%q\n' "$0"`, secret).CombinedOutput()
			if err != nil {
				t.Fatalf("bash: %v: %s", err, out)
			}
			if strings.ContainsFunc(secret, func(r rune) bool { return r > 0x7e }) && flags == "-c" {
				continue // as octal numbers, where the locale is none of Unicode
			}
			if got := New([]string{secret}).String(string(out)); !strings.Contains(got, Marker) {
				t.Errorf("%q by bash %s: got %q", secret, flags, got)
			}
		}
	}
}

func TestPartsAreHidden(t *testing.T) {
	key := jsonOf(map[string]any{"private_key": pem, "nested": []any{"deep-secret-1"}, "n": 1})
	for _, c := range []struct{ name, secret, text, want string }{
		{"a line of a key", pem, "  BKgwggSkAgEAAoIBAQC7vbqajDw4o6gJ", "  " + Marker},
		{"the frame of a key", pem, "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"},
		{"a password of a URL", "https://me:p%40ssword@host/x", "login p@ssword", "login " + Marker},
		{"a string in JSON", key, "deep-secret-1!", Marker + "!"},
		{"a line of a string in JSON", key, "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC", Marker},
		{"what is short", "abc", "abc", "abc"},
		{"a word", "true", "true", "true"},
		{"two at once", "first", "firstfirst first\nfirst", Marker + " " + Marker + "\n" + Marker},
	} {
		if got := New([]string{c.secret}).String(c.text); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := New([]string{"abcdef", "defghi"}).String("xabcdefghix"); got != "x"+Marker+"x" {
		t.Errorf("overlapping values: got %q", got)
	}
	if s := New(nil); !s.Empty() || s.String("x") != "x" {
		t.Error("an empty set hides something")
	}
	if s := New([]string{"ab", "true"}); !s.Empty() {
		t.Error("a set of what is never hidden is not empty")
	}
	base := base32.StdEncoding.EncodeToString([]byte("hunter2-and-more"))
	if got := New([]string{"hunter2-and-more"}).String(base); got != base {
		t.Errorf("base32, which the docs say is not found, is: %q", got)
	}
}

// oracle hides by looking at everything at once.
func oracle(s *Set, text string) string {
	var flat []byte
	var breaks []lineBreak
	for _, c := range []byte(text) {
		if c == '\n' || c == '\r' {
			breaks = append(breaks, lineBreak{at: len(flat), char: c})
			continue
		}
		flat = append(flat, c)
	}
	hidden, joined := make([]bool, len(flat)), make([]bool, len(flat)+1) // joined: a value stands on both sides
	for _, with := range s.patterns {
		for _, p := range with {
			for i := range flat {
				if bytes.HasPrefix(flat[i:], p) {
					for j := i; j < i+len(p); j++ {
						hidden[j] = true
						joined[j] = joined[j] || j > i
					}
				}
			}
		}
	}
	var out strings.Builder
	for i := 0; i <= len(flat); i++ {
		broken := false
		for len(breaks) > 0 && breaks[0].at == i {
			if !joined[i] {
				out.WriteByte(breaks[0].char)
				broken = true
			}
			breaks = breaks[1:]
		}
		switch {
		case i == len(flat):
		case !hidden[i]:
			out.WriteByte(flat[i])
		case i == 0 || !hidden[i-1] || broken:
			out.WriteString(Marker)
		}
	}
	return out.String()
}

// TestSplits holds that the output does not depend on how the stream is cut, is
// what an oracle makes of it, and never holds a value.
func TestSplits(t *testing.T) {
	secret := rapid.StringOfN(rapid.RuneFrom([]rune("AB\n")), 4, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfN(secret, 1, 4).Draw(t, "secrets")
		set := New(secrets)
		if set.Empty() {
			t.Skip("only line breaks")
		}
		pieces := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom(secrets), rapid.StringOfN(rapid.RuneFrom([]rune("AB\n\rz")), 0, 8, -1),
			rapid.Map(rapid.SampledFrom(secrets), func(s string) string { return base64.StdEncoding.EncodeToString([]byte("z" + s)) }),
		), 0, 12).Draw(t, "text")
		text := strings.Join(pieces, "")
		want := oracle(set, text)
		if got := set.String(text); got != want {
			t.Fatalf("%q in %q: got %q, want %q", secrets, text, got, want)
		}
		var out strings.Builder
		w := NewWriter(set, &out)
		settled := false
		for rest := text; rest != ""; {
			n := rapid.IntRange(0, len(rest)).Draw(t, "write")
			if _, err := w.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				n = 1
				if _, err := w.Write([]byte(rest[:1])); err != nil {
					t.Fatal(err)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "pause") == 0 {
				settled = true
				if err := w.Settle(); err != nil {
					t.Fatal(err)
				}
			}
			rest = rest[n:]
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !settled && got != want {
			t.Fatalf("%q in %q, split: got %q, want %q", secrets, text, got, want)
		}
		if w.Pending() {
			t.Fatal("something is kept back after the end")
		}
		for clear := range strings.SplitSeq(out.String(), Marker) {
			for _, p := range set.all() {
				if strings.Contains(withoutBreaks(clear), p) {
					t.Fatalf("%q in %q: %q is left in %q", secrets, text, p, out.String())
				}
			}
		}
	})
}

func (s *Set) all() []string {
	var all []string
	for _, with := range s.patterns {
		for _, p := range with {
			all = append(all, string(p))
		}
	}
	return all
}

func FuzzSplits(f *testing.F) {
	f.Add("AABB", "xAABBx\nAA\nBB", uint16(3))
	f.Add("\nAB\nA", "ABAABA", uint16(1))
	f.Fuzz(func(t *testing.T, secret, text string, at uint16) {
		if len(secret) > 200 || len(text) > 2000 {
			return
		}
		set := New([]string{secret})
		if set.Empty() {
			return
		}
		want := oracle(set, text)
		var out strings.Builder
		w := NewWriter(set, &out)
		cut := min(int(at), len(text))
		for _, part := range []string{text[:cut], text[cut:]} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Fatalf("%q in %q at %d: got %q, want %q", secret, text, cut, got, want)
		}
	})
}

// TestPause holds what a pause of the stream shows: no line of a quiet task is
// kept back for a letter, and no value is shown for a pause within it.
func TestPause(t *testing.T) {
	const secret = "s3cret-of-32-bytes-0123456789abc"
	for _, c := range []struct{ name, write, want string }{
		{"a line that ends as a value begins", "loss s\n", "loss s\n"},
		{"a few bytes of a value", "s3cr", "s3cr"},
		{"more of it", "line\ns3cret", "line\n"},
		{"all of it", secret + "\n", Marker + "\n"},
	} {
		var out strings.Builder
		w := NewWriter(New([]string{secret}), &out)
		if _, err := w.Write([]byte(c.write)); err != nil {
			t.Fatal(err)
		}
		if err := w.Settle(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	var out strings.Builder
	w := NewWriter(New([]string{secret}), &out)
	for _, part := range []string{"a s3c", secret[3:], " b\n"} {
		if _, err := w.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
		if err := w.Settle(); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "a s3c"+Marker+" b\n"; got != want {
		t.Errorf("a value with a pause after its first bytes: got %q, want %q", got, want)
	}
}

// BenchmarkWriter reports MB/s of training logs; "none" is the copy alone.
func BenchmarkWriter(b *testing.B) {
	var log strings.Builder
	for i := 0; log.Len() < 1<<20; i++ {
		fmt.Fprintf(&log, "2026-01-02T15:04:05Z step=%d loss=%.6f tokens/s=%d grad_norm=%g path=/data/shard-%05d.npz\n", i, 1/float64(i+1), 123456+i, float64(i)*1.5, i%1000)
	}
	text := []byte(log.String())
	for _, n := range []int{0, 1, 10, 100} {
		var secrets []string
		for i := range n {
			secrets = append(secrets, fmt.Sprintf("tok/%d+%x", i*7919, i*104729+3))
		}
		set := New(secrets)
		b.Run(fmt.Sprintf("%d-values", n), func(b *testing.B) {
			var to discard
			w := NewWriter(set, &to)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for rest := text; len(rest) > 0; {
					part := rest[:min(len(rest), 64<<10)]
					if _, err := w.Write(part); err != nil {
						b.Fatal(err)
					}
					rest = rest[len(part):]
				}
			}
		})
	}
}

type discard struct{}

func (*discard) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		New([]string{hard, pem, "hunter2-and-more"})
	}
}
