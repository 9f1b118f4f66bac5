package tpu

import (
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// name is a resource name taken apart: projects/P/locations/Z, and
// /COLLECTION/ID of what is in there.
type name struct {
	project, zone  string
	collection, id string
}

// parseName takes a name apart; what is missing at its end stays "".
func parseName(s string) (name, bool) {
	parts := strings.Split(s, "/")
	if len(parts) < 2 || len(parts)%2 != 0 || len(parts) > 6 || parts[0] != "projects" || len(parts) > 2 && parts[2] != "locations" {
		return name{}, false
	}
	n := name{project: parts[1]}
	if len(parts) > 2 {
		n.zone = parts[3]
	}
	if len(parts) > 4 {
		n.collection, n.id = parts[4], parts[5]
	}
	return n, true
}

func (n name) parent() string { return "projects/" + n.project + "/locations/" + n.zone }

func (n name) key(kind cloud.Kind) cloud.Key {
	return cloud.Key{Project: n.project, Zone: n.zone, Kind: kind, Name: n.id}
}

// names reads the names and pages that requests ask for, and knows which zones
// there are.
type names struct{ cloud *cloud.Cloud }

// parent takes a parent apart; a zone of "-" stands for all where that is allowed.
func (s names) parent(text string, all bool) (name, error) {
	n, ok := parseName(text)
	if !ok || n.zone == "" || n.collection != "" {
		return name{}, invalid("%q is not a parent: want projects/PROJECT/locations/ZONE.", text)
	}
	return n, s.zoned(n, all)
}

// resource takes the name of something in a collection apart.
func (s names) resource(text, collection string) (name, error) {
	n, ok := parseName(text)
	if !ok || n.collection != collection || n.id == "" {
		return name{}, invalid("%q is not a name: want projects/PROJECT/locations/ZONE/%s/ID.", text, collection)
	}
	return n, s.zoned(n, false)
}

func (s names) zoned(n name, all bool) error {
	if n.zone == "-" && all || s.cloud.HasZone(n.zone) {
		return nil
	}
	return status.Errorf(codes.NotFound, "Location %s is not found or access is unauthorized.", n.zone)
}

// checkID holds a name that its owner chose to RFC 1035.
func checkID(id string) error {
	if !begins(id) || !consists(id, "-") || len(id) > 63 || strings.HasSuffix(id, "-") {
		return invalid("Resource ID %q is not valid: it must begin with a lowercase letter, followed by up to 62 lowercase letters, digits"+
			" or hyphens, and must not end with a hyphen.", id)
	}
	return nil
}

// checkLabels holds labels to what the service takes.
func checkLabels(labels map[string]string) error {
	if len(labels) > 64 {
		return invalid("%d labels are too many: at most 64 are allowed.", len(labels))
	}
	for k, v := range labels {
		if !begins(k) || !consists(k, "_-") || len(k) > 63 {
			return invalid("Label key %q is not valid: it must match [a-z][a-z0-9_-]{0,62}.", k)
		}
		if !consists(v, "_-") || len(v) > 63 {
			return invalid("Label value %q of %q is not valid: it must match [a-z0-9_-]{0,63}.", v, k)
		}
	}
	return nil
}

// begins reports whether it begins with a lowercase letter.
func begins(s string) bool { return s != "" && 'a' <= s[0] && s[0] <= 'z' }

// consists reports whether it is of lowercase letters, digits and more.
func consists(s, more string) bool {
	for _, c := range []byte(s) {
		if letter, digit := 'a' <= c && c <= 'z', '0' <= c && c <= '9'; !letter && !digit && strings.IndexByte(more, c) < 0 {
			return false
		}
	}
	return true
}
