package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// MaxNameLength is what Cloud TPU and Compute Engine allow for a resource name.
const MaxNameLength = 63

// maxSlug is how much of an address a name spells out.
const maxSlug = 40

// SliceName is the name of the index-th slice of an owner: the same for every
// caller, so that creating it twice is adopting it. It is at most 63 of [a-z0-9-].
func SliceName(stack string, owner schema.Address, index int) string {
	return SliceNameIn("", stack, owner, index)
}

// SliceNameIn is that of a slice in a zone, if there are zones.
func SliceNameIn(zone, stack string, owner schema.Address, index int) string {
	slug, whole := SlugOf(owner)
	n := strconv.Itoa(index)
	parts := []string{stack, owner.String(), n}
	if zone != "" {
		parts = append(parts, zone)
	}
	sum := HashOf(parts...)
	// Where the slug tells owners apart, few digits do; where it had to be
	// cut, thousands of owners may share it.
	digits := 8
	if !whole {
		digits = 16
	}
	suffix := "-" + n + "-" + sum[:digits]
	return strings.TrimRight(slug[:min(len(slug), MaxNameLength-len(suffix))], "-") + suffix
}

// JobID is the globally unique id of a job instance; revision tells apart
// instances of one address that were deleted and declared again.
func JobID(lineage string, addr schema.Address, revision uint64) string {
	slug, _ := SlugOf(addr)
	return slug + "-" + HashOf(lineage, addr.String(), strconv.FormatUint(revision, 10))[:12]
}

// JobStem is what the ids of all jobs at an address begin with, in any lineage.
// Addresses that differ in nothing but what a slug leaves out share it.
func JobStem(addr schema.Address) string {
	slug, _ := SlugOf(addr)
	return slug
}

// StemOf is the stem of a job's id, "" if it is none.
func StemOf(id string) string {
	i := strings.LastIndexByte(id, '-')
	if i < 0 || len(id)-i-1 != 12 || strings.Trim(id[i+1:], "0123456789abcdef") != "" {
		return ""
	}
	return id[:i]
}

// HashOf returns a short hash of parts for names.
func HashOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// moduleSlug is the names and keys of modules, without what is between them.
func moduleSlug(path string) string {
	words := strings.FieldsFunc(strings.ReplaceAll("."+path, ".module.", "."), func(r rune) bool { return strings.ContainsRune(`.[]"`, r) })
	return strings.Join(words, "-")
}

// SlugOf keeps what people need to recognize an address: modules, group, name
// and key.
// whole is false if it had to be cut.
func SlugOf(a schema.Address) (slug string, whole bool) {
	key := ""
	if n, ok := a.Key.Int(); ok {
		key = strconv.Itoa(n)
	} else if s, ok := a.Key.Str(); ok {
		key = s
	}
	var b strings.Builder
	for _, part := range []string{moduleSlug(a.Module), a.Group, a.Name, key} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		for _, r := range strings.ToLower(part) {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				b.WriteRune(r)
			} else {
				b.WriteByte('-')
			}
		}
	}
	slug = strings.Trim(b.String(), "-")
	if slug == "" || slug[0] < 'a' { // names start with a letter
		slug = "s-" + slug
	}
	return strings.TrimRight(slug[:min(len(slug), maxSlug)], "-"), len(slug) <= maxSlug
}
