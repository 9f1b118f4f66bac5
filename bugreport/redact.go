package bugreport

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/fray-ml/fray/agent/mask"
)

// redactor masks secrets in what is collected: the sensitive values of the stack, wherever they occur, and texts
// that have the shape of a secret.
type redactor struct {
	known  *mask.Set
	blocks []shape // of several lines
	shapes []shape
}

// shape is how a kind of secret looks. A line without any of its hints, in lower case, has none: expressions alone
// take half a minute for the largest file.
type shape struct {
	hints   []string
	pattern *regexp.Regexp
	with    string
}

// marker is what stands in place of a secret.
const marker = mask.Marker

// whole is a shape of which nothing is kept, hints are divided by blanks.
func whole(hints, pattern string) shape {
	return shape{strings.Fields(hints), regexp.MustCompile(pattern), marker}
}

// inner is a shape whose groups 1 and 3 are kept.
func inner(hints, pattern string) shape {
	return shape{strings.Fields(hints), regexp.MustCompile(pattern), "${1}" + marker + "${3}"}
}

// blocks are private keys, also those that a cut goes through, and the words behind flags in lists.
func blocks() []shape {
	return []shape{
		whole("-----begin", `(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----|\z)`),
		inner("\"-", `("--?(?i:[a-z-]*(?:passwd|password|passphrase|secret|token|credential|api-?key|access-?key))"\s*,\s*")([^"]+)(")`),
		whole("-----end", `(?s)\A[A-Za-z0-9+/=\s\\nr]*-----END [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----`),
	}
}

// shapes are those of well-known secrets. The most specific come first.
func shapes() []shape {
	const (
		names = `(?:passwd|password|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|authorization)`
		hints = "passwd password passphrase secret token credential key authorization"
	)
	return []shape{
		whole("age-secret-key", `AGE-SECRET-KEY-1[0-9A-Za-z]+`),
		whole("v1:", `v1:[A-Za-z0-9+/]{20,}={0,2}`), // what fray itself has sealed
		// Tokens of services.
		whole("ghp_ gho_ ghu_ ghs_ ghr_", `gh[pousr]_[A-Za-z0-9]{16,}`), whole("github_pat_", `github_pat_[A-Za-z0-9_]{16,}`),
		whole("glpat- glrt- gldt- glcbt- glptt- glft- glsoat-", `gl(?:pat|rt|dt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{16,}`),
		whole("xox", `xox[abeoprs]-[A-Za-z0-9-]{8,}`), whole("xapp-", `xapp-[A-Za-z0-9-]{8,}`),
		whole("akia asia", `(?:AKIA|ASIA)[A-Z0-9]{12,}`), whole("aiza", `AIza[A-Za-z0-9_-]{30,}`), whole("ya29.", `ya29\.[A-Za-z0-9_.-]{16,}`),
		whole("gocspx-", `GOCSPX-[A-Za-z0-9_-]{16,}`), whole("1//0", `1//0[A-Za-z0-9_-]{20,}`),
		whole("sk-", `sk-[A-Za-z0-9_-]{16,}`), whole("_live_ _test_", `(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{12,}`),
		whole("hf_", `hf_[A-Za-z0-9]{16,}`), whole("npm_", `npm_[A-Za-z0-9]{20,}`), whole("pypi-", `pypi-[A-Za-z0-9_-]{16,}`),
		whole("sg.", `SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}`), whole("wandb_v1_", `wandb_v1_[A-Za-z0-9_]{16,}`), whole("dop_v1_", `dop_v1_[a-f0-9]{32,}`),
		whole("eyj", `eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*`),
		// Addresses that are secrets, or have one in them.
		inner("hooks.slack discord webhook.office chat.googleapis logic.azure", `(https://(?:hooks\.slack\.com|hooks\.slack-gov\.com|discord(?:app)?\.com/api/webhooks|[a-z0-9.-]+\.webhook\.office\.com|chat\.googleapis\.com/v1/spaces|[a-z0-9.-]+\.logic\.azure\.com)/)([^\s"'<>\\()]+)()`),
		inner("/hook /webhook", `(?i)(https?://[^\s"'<>\\]*/(?:hook|hooks|webhook|webhooks)/)([^\s"'<>\\()]+)()`),
		inner("://", `([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\\]*:)([^\s/@"'<>\\]+)(@)`),
		inner("= ", `(?i)([?&](?:[a-z0-9_.-]*(?:token|secret|password|signature|credential)|sig|key|apikey|api_key|auth)=)([^\s&"'<>\\()]+)()`),
		// Headers.
		inner("bearer basic", `(?i)(\b(?:bearer|basic)[ +]+)([A-Za-z0-9._~+/=-]{8,})()`),
		// Names whose value is one. A quoted value may have blanks in it.
		inner(hints, `(?i)(`+names+`s?(?:[_-][a-z0-9_-]{1,20})?\\?["']?\s*[:=]\s*\\?")([^"\\\r\n]{4,})(\\?")`),
		inner(hints, `(?i)(`+names+`s?(?:[_-][a-z0-9_-]{1,20})?\\?["']?\s*[:=]\s*'?)([^\s"'\\,;&(){}\[\]]{4,})()`),
		inner(hints, `(?i)(--?(?:[a-z-]*(?:passwd|password|passphrase|secret|token|credential|api-?key|access-?key))[ =]"?)([^\s"'\\,;&(){}\[\]]{4,})()`),
	}
}

// newRedactor masks the given values besides what has the shape of a secret.
func newRedactor(secrets []string) *redactor {
	return &redactor{known: mask.New(secrets), blocks: blocks(), shapes: shapes()}
}

// bytes returns data with secrets masked, and how many places were.
func (r *redactor) bytes(data []byte) (masked []byte, places int) {
	before := bytes.Count(data, []byte(marker))
	data = hide([]byte(r.known.String(string(data))), r.blocks)
	out := make([]byte, 0, len(data))
	for line := range bytes.Lines(data) {
		out = append(out, hide(line, r.shapes)...)
	}
	return out, bytes.Count(out, []byte(marker)) - before
}

// hide masks what has one of the shapes.
func hide(text []byte, shapes []shape) []byte {
	lower := bytes.ToLower(text)
	for _, s := range shapes {
		for _, hint := range s.hints {
			if bytes.Contains(lower, []byte(hint)) {
				text = s.pattern.ReplaceAll(text, []byte(s.with))
				break
			}
		}
	}
	return text
}

// text is bytes of a text.
func (r *redactor) text(text string) string {
	masked, _ := r.bytes([]byte(text))
	return string(masked)
}
