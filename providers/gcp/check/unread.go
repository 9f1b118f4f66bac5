package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/schema"
)

// lookup is something that only a check reads.
type lookup struct {
	what       string // "firewall rules"
	api        string // "compute"
	permission string
	role       string // that has it
}

// unread notes that these credentials may not look something up, or that its API is not
// enabled. It is no mistake of the project: nothing is rejected for it.
func (c *checker) unread(l lookup, err error) {
	a, ok := apierror.AnswerOf(err)
	if !ok || apierror.KindOf(err) != schema.ErrorPermission || a.Code == codes.Unauthenticated {
		c.passes(err)
		return
	}
	why := fmt.Sprintf("%s (%s, which %s has)", l.what, l.permission, l.role)
	if a.Has("SERVICE_DISABLED", "accessNotConfigured", "has not been used in project") {
		why = fmt.Sprintf("%s (the API %s.googleapis.com is not enabled)", l.what, l.api)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreadable[why] = true
}

// addUnread warns once of all lookups that these credentials may not make.
func (c *checker) addUnread() {
	if len(c.unreadable) == 0 {
		return
	}
	c.add(warningAt(ofProject(), "Some checks were left out", fmt.Sprintf(
		"These credentials may not read: %s. What is wrong there shows only once slices are asked for.",
		strings.Join(slices.Sorted(maps.Keys(c.unreadable)), "; "))))
}
