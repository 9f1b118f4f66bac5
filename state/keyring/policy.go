package keyring

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Policy states who may open a stack's key. The zero Policy is plain: all who may
// read the store. At most one of the two is set.
type Policy struct {
	// Recipients are age recipients ("age1…") and SSH public keys
	// ("ssh-ed25519 …", "ssh-rsa …"), each of which opens the key alone.
	Recipients []string
	// KMSKey names the key of a service: "gcp-kms://projects/P/locations/L/keyRings/R/cryptoKeys/K"
	// or "file:///path/to/key".
	KMSKey string
}

// Encrypts reports whether documents are encrypted at all.
func (p Policy) Encrypts() bool { return len(p.Recipients) > 0 || p.KMSKey != "" }

// Validate returns all problems of the policy.
func (p Policy) Validate() error {
	if len(p.Recipients) > 0 && p.KMSKey != "" {
		return errors.New("the state's key is wrapped for recipients or by a KMS key: remove one of the two")
	}
	if p.KMSKey != "" {
		_, err := parseKMSKey(p.KMSKey)
		return err
	}
	_, err := parseRecipients(p.Recipients)
	return err
}

// form is the one in which the key is kept.
func (p Policy) form() Form {
	switch {
	case p.KMSKey != "":
		return FormKMS
	case len(p.Recipients) > 0:
		return FormAge
	}
	return FormPlain
}

// normal is the policy as it is recorded: without spaces around what is in it,
// duplicates, and the short form of a KMS key's name.
func (p Policy) normal() Policy {
	var n Policy
	for _, r := range p.Recipients {
		r = strings.TrimSpace(r)
		if !slices.ContainsFunc(n.Recipients, func(o string) bool { return sameRecipient(o, r) }) {
			n.Recipients = append(n.Recipients, r)
		}
	}
	n.KMSKey = fullKMSKey(p.KMSKey)
	return n
}

// checkText rejects what does not survive being written as JSON, or hides a
// second line.
func checkText(s string) error {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return fmt.Errorf("%.40q has control characters or is not UTF-8", s)
	}
	return nil
}
