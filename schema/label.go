package schema

import (
	"errors"
	"fmt"
	"strings"
)

// maxCloudLabel is how many characters the key and the value of a label on
// Google Cloud may have, each. The limits are those of the labels of Compute
// Engine and of the Cloud TPU API.
const maxCloudLabel = 63

// ownLabels is how the keys begin that fray sets by itself.
const ownLabels = "fray-"

// CheckCloudLabel says what is wrong with a label that is to be put on slices on
// Google Cloud, and how to fix it; nil: nothing.
func CheckCloudLabel(key, value string) error {
	switch {
	case key == "":
		return errors.New("the key of a label is empty: give it a name")
	case strings.HasPrefix(key, ownLabels):
		return fmt.Errorf("the key %q begins with %q, as those do that fray sets itself: choose another one", key, ownLabels)
	case len(key) > maxCloudLabel:
		return fmt.Errorf("the key %q has %d characters: a label's key may have %d", key, len(key), maxCloudLabel)
	case key[0] < 'a' || key[0] > 'z':
		return fmt.Errorf("the key %q must begin with a lower-case letter", key)
	case notOfLabels(key) != "":
		return fmt.Errorf("the key %q has %s: a label's key is made of a-z, 0-9, _ and -", key, notOfLabels(key))
	case len(value) > maxCloudLabel:
		return fmt.Errorf("the value of %q has %d characters: a label's value may have %d", key, len(value), maxCloudLabel)
	case notOfLabels(value) != "":
		return fmt.Errorf("the value %q of %q has %s: a label's value is made of a-z, 0-9, _ and -", value, key, notOfLabels(value))
	}
	return nil
}

// CheckNetworkTag says what is wrong with a network tag of Compute Engine; nil: nothing.
func CheckNetworkTag(tag string) error {
	if len(tag) > maxCloudLabel || tag == "" || tag[0] < 'a' || tag[0] > 'z' || strings.Contains(tag, "_") || notOfLabels(tag) != "" {
		return fmt.Errorf("%q is no network tag: write a lower-case letter, then at most 62 of a-z, 0-9 and -", tag)
	}
	return nil
}

// notOfLabels names, quoted, the first character that labels do not have.
func notOfLabels(s string) string {
	for _, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return fmt.Sprintf("%q", r)
		}
	}
	return ""
}
