package stack

import (
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// SortedJobs are the addresses of a document's jobs, in order.
func SortedJobs(doc *state.Document) []schema.Address {
	return slices.SortedFunc(maps.Keys(doc.Jobs), schema.Address.Compare)
}

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// UserAtHost is this user, for the record.
func UserAtHost() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// CommandLine describes this process to processes that find the lease held: program and
// verb, without values that might be secret.
func CommandLine() string {
	line := []string{"fray"}
	for _, w := range os.Args[1:] {
		if strings.HasPrefix(w, "-") {
			break
		}
		line = append(line, w)
	}
	return strings.Join(line, " ")
}

// SortedAddresses are the addresses of a map, in order.
func SortedAddresses[V any](m map[schema.Address]V) []schema.Address {
	return slices.SortedFunc(maps.Keys(m), schema.Address.Compare)
}
