package stack

import (
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// SortedJobs are the addresses of a document's jobs, in order.
func SortedJobs(doc *state.Document) []schema.Address {
	return slices.SortedFunc(maps.Keys(doc.Jobs), schema.Address.Compare)
}

// SortedKeys are the keys of a map, in order.
func SortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// UserAtHost is this user, for the record: in a job of CI who it runs for, and the job.
func UserAtHost() string {
	if user, job := ciJob(os.Getenv); user != "" {
		return user + " in " + job
	}
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

// ciJob is who a job of CI runs for, and where its log is; "" outside of one.
func ciJob(getenv func(string) string) (user, job string) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true" && getenv("GITHUB_ACTOR") != "":
		return getenv("GITHUB_ACTOR"), getenv("GITHUB_SERVER_URL") + "/" + getenv("GITHUB_REPOSITORY") + "/actions/runs/" + getenv("GITHUB_RUN_ID")
	case getenv("GITLAB_CI") == "true" && getenv("GITLAB_USER_LOGIN") != "":
		return getenv("GITLAB_USER_LOGIN"), getenv("CI_JOB_URL")
	}
	return "", ""
}

// leaseOf is what the lease of a command states about it.
func leaseOf(c store.LeaseConfig) store.LeaseConfig {
	c.Command = CommandLine()
	if user, job := ciJob(os.Getenv); user != "" {
		c.User, c.Command = user, c.Command+" in "+job
	}
	return c
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
