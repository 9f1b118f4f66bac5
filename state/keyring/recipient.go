package keyring

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"
	"filippo.io/age/agessh"
)

const wantRecipient = `want an age recipient ("age1…", as age-keygen prints it) or an SSH public key ("ssh-ed25519 …" or "ssh-rsa …", a line of a .pub file)`

// parseRecipients returns all mistakes at once.
func parseRecipients(texts []string) ([]age.Recipient, error) {
	var recipients []age.Recipient
	var mistakes []error
	quantum := 0
	for i, text := range texts {
		r, err := parseRecipient(strings.TrimSpace(text))
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("recipient %d: %w", i+1, err))
			continue
		}
		if _, ok := r.(*age.HybridRecipient); ok {
			quantum++
		}
		recipients = append(recipients, r)
	}
	if quantum > 0 && quantum < len(recipients) {
		mistakes = append(mistakes, errors.New(`post-quantum recipients ("age1pq1…") cannot be mixed with others, `+
			`which would undo what they are for: use only such or none`))
	}
	return recipients, errors.Join(mistakes...)
}

// parseRecipient never repeats what may be a secret.
func parseRecipient(text string) (age.Recipient, error) {
	if strings.Contains(text, "PRIVATE KEY") || strings.HasPrefix(strings.ToUpper(text), "AGE-SECRET-KEY-") {
		return nil, errors.New("this is a secret key, which must not be written here (and, having been, is better replaced): " +
			"write its public one, as `age-keygen -y FILE` or `ssh-keygen -y -f FILE` prints it")
	}
	if err := checkText(text); err != nil {
		return nil, err
	}
	switch kind, _, _ := strings.Cut(text, " "); {
	case text == "":
		return nil, errors.New("it is empty: " + wantRecipient)
	case kind == "ssh-ed25519", kind == "ssh-rsa":
		r, err := agessh.ParseRecipient(text)
		if err != nil {
			return nil, fmt.Errorf("%s is no SSH public key: %w; write the line of the .pub file whole", nameRecipient(text), reason(err))
		}
		return r, nil
	case strings.HasPrefix(kind, "ssh-"), strings.HasPrefix(kind, "ecdsa-"), strings.HasPrefix(kind, "sk-"):
		return nil, fmt.Errorf("%s: SSH keys of type %q cannot encrypt: %s", nameRecipient(text), kind, wantRecipient)
	case strings.HasPrefix(text, "age1"):
		return parseAgeRecipient(text)
	}
	return nil, fmt.Errorf("%s is no recipient: %s", nameRecipient(text), wantRecipient)
}

func parseAgeRecipient(text string) (age.Recipient, error) {
	if i := strings.LastIndex(text, "1"); i > len("age") && !strings.HasPrefix(text, "age1pq1") {
		return nil, fmt.Errorf("%s is mistyped, or the recipient of an age plugin, which fray does not run: %s", nameRecipient(text), wantRecipient)
	}
	parsed, err := age.ParseRecipients(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is no age recipient, some of it is missing or mistyped: %w", nameRecipient(text), reason(err))
	}
	return parsed[0], nil
}

// reason is the last part of a library's message; before that it repeats
// what it was given.
func reason(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return errors.New(text)
}

// longRecipient is the length in bytes from which a recipient is shortened for people.
const longRecipient = 70

// nameRecipient names a recipient for people: an SSH key by its comment too.
func nameRecipient(text string) string {
	fields := strings.Fields(text)
	if len(fields) >= 2 && strings.HasPrefix(fields[0], "ssh-") {
		name := fields[0] + " " + shorten(fields[1], 16)
		if len(fields) > 2 {
			name += " (" + shorten(strings.Join(fields[2:], " "), 40) + ")"
		}
		return name
	}
	return shorten(text, longRecipient)
}

// shorten keeps the ends of a text, by which people recognize keys.
func shorten(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	tail := limit / 2
	return string(runes[:limit-tail]) + "…" + string(runes[len(runes)-tail:])
}

func nameRecipients(texts []string) []string {
	var names []string
	for _, text := range texts {
		names = append(names, nameRecipient(text))
	}
	return names
}

// sameRecipient compares without the comments of SSH keys.
func sameRecipient(a, b string) bool { return bareRecipient(a) == bareRecipient(b) }

func bareRecipient(text string) string {
	fields := strings.Fields(text)
	return strings.Join(fields[:min(len(fields), 2)], " ")
}
