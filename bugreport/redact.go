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
	shapes []shape
}

// shape is how a kind of secret looks. Group 1, where there is one, is kept, and group 3.
type shape struct {
	pattern *regexp.Regexp
	with    string
}

// marker is what stands in place of a secret.
const marker = mask.Marker

// shapes are those of well-known secrets. The most specific come first.
func shapes() []shape {
	whole := func(pattern string) shape { return shape{regexp.MustCompile(pattern), marker} }
	inner := func(pattern string) shape { return shape{regexp.MustCompile(pattern), "${1}" + marker + "${3}"} }
	return []shape{
		// Private keys, also those that a cut goes through.
		whole(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----|\z)`),
		whole(`(?s)\A[A-Za-z0-9+/=\s\\nr]*-----END [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----`),
		whole(`AGE-SECRET-KEY-1[0-9A-Za-z]+`),
		// What fray itself has sealed.
		whole(`v1:[A-Za-z0-9+/]{20,}={0,2}`),
		// Tokens of services.
		whole(`gh[pousr]_[A-Za-z0-9]{16,}`), whole(`github_pat_[A-Za-z0-9_]{16,}`), whole(`gl(?:pat|rt|dt|cbt|ptt|ft|soat)-[A-Za-z0-9_.-]{16,}`),
		whole(`xox[abeoprs]-[A-Za-z0-9-]{8,}`), whole(`xapp-[A-Za-z0-9-]{8,}`),
		whole(`(?:AKIA|ASIA)[A-Z0-9]{12,}`), whole(`AIza[A-Za-z0-9_-]{30,}`), whole(`ya29\.[A-Za-z0-9_.-]{16,}`), whole(`GOCSPX-[A-Za-z0-9_-]{16,}`), whole(`1//0[A-Za-z0-9_-]{20,}`),
		whole(`sk-[A-Za-z0-9_-]{16,}`), whole(`(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{12,}`), whole(`hf_[A-Za-z0-9]{16,}`), whole(`npm_[A-Za-z0-9]{20,}`), whole(`pypi-[A-Za-z0-9_-]{16,}`),
		whole(`SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}`), whole(`wandb_v1_[A-Za-z0-9_]{16,}`), whole(`dop_v1_[a-f0-9]{32,}`),
		whole(`eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*`),
		// Addresses that are secrets, or have one in them.
		inner(`(https://(?:hooks\.slack\.com|hooks\.slack-gov\.com|discord(?:app)?\.com/api/webhooks|[a-z0-9.-]+\.webhook\.office\.com|chat\.googleapis\.com/v1/spaces|[a-z0-9.-]+\.logic\.azure\.com)/)([^\s"'<>\\]+)()`),
		inner(`(?i)(https?://[^\s"'<>\\]*/(?:hook|hooks|webhook|webhooks)/)([^\s"'<>\\]+)()`),
		inner(`([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"'<>\\]*:)([^\s/@"'<>\\]+)(@)`),
		inner(`(?i)([?&](?:[a-z0-9_.-]*(?:token|secret|password|signature|credential)|sig|key|apikey|api_key|auth)=)([^\s&"'<>\\]+)()`),
		// Headers.
		inner(`(?i)(\b(?:bearer|basic)[ +]+)([A-Za-z0-9._~+/=-]{8,})()`),
		// Names whose value is one. A quoted value may have blanks in it.
		inner(`(?i)((?:passwd|password|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|authorization)s?(?:[_-][a-z0-9_-]{1,20})?\\?["']?\s*[:=]\s*\\?")([^"\\\r\n]{4,})(\\?")`),
		inner(`(?i)((?:passwd|password|passphrase|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|authorization)s?(?:[_-][a-z0-9_-]{1,20})?\\?["']?\s*[:=]\s*'?)([^\s"'\\,;&(){}\[\]]{4,})()`),
		inner(`(?i)(--?(?:[a-z-]*(?:passwd|password|passphrase|secret|token|credential|api-?key|access-?key))[ =]"?)([^\s"'\\,;&(){}\[\]]{4,})()`),
	}
}

// newRedactor masks the given values besides what has the shape of a secret.
func newRedactor(secrets []string) *redactor {
	return &redactor{known: mask.New(secrets), shapes: shapes()}
}

// bytes returns data with secrets masked, and how many places were.
func (r *redactor) bytes(data []byte) (masked []byte, places int) {
	before := bytes.Count(data, []byte(marker))
	text := r.known.String(string(data))
	for _, s := range r.shapes {
		text = s.pattern.ReplaceAllString(text, s.with)
	}
	return []byte(text), strings.Count(text, marker) - before
}

// text is bytes of a text.
func (r *redactor) text(text string) string {
	masked, _ := r.bytes([]byte(text))
	return string(masked)
}
