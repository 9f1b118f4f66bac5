package resolver

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Endpoint is where an actor is.
type Endpoint struct {
	Name        string // of the actor, in its server
	Address     string // host:port
	GRPC        bool   // is called by gRPC
	Incarnation string // "": not known
	// Member distinguishes endpoints of one name and stays the same when one of them
	// is restarted elsewhere: the job and task, or the address.
	Member    string
	Namespace string
	JobID     string
	Task      int
	Metadata  map[string]string
}

// URL is how the endpoint is written: actor://host:port/name, or grpc://.
func (e Endpoint) URL() string {
	u := url.URL{Scheme: schemeActor, Host: e.Address, Path: "/" + e.Name}
	if e.GRPC {
		u.Scheme = schemeGRPC
	}
	return u.String()
}

// Same reports whether calls to either reach the same object, as far as that is known.
func (e Endpoint) Same(other Endpoint) bool {
	return e.At(other) && e.Incarnation == other.Incarnation
}

// Still reports whether what a resolver returns now may be the same object.
func (e Endpoint) Still(now Endpoint) bool {
	return e.At(now) && (now.Incarnation == "" || now.Incarnation == e.Incarnation)
}

// At reports whether both are of one name at one server.
func (e Endpoint) At(other Endpoint) bool {
	return e.Address == other.Address && e.Name == other.Name && e.GRPC == other.GRPC
}

const (
	schemeActor = "actor"
	schemeGRPC  = "grpc"
)

// ParseURL reads host:port, actor://host:port/name or grpc://host:port/name. The
// name is "" where the text has none.
func ParseURL(text string) (Endpoint, error) {
	bad := func(problem string) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("actor address %q: %s; want host:port, actor://host:port/name or grpc://host:port/name", text, problem)
	}
	e := Endpoint{Address: text}
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return bad("it is no URL")
		}
		if u.Scheme != schemeActor && u.Scheme != schemeGRPC {
			return bad(fmt.Sprintf("unknown scheme %q", u.Scheme))
		}
		if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return bad("it has a user, a query or a fragment")
		}
		e = Endpoint{Address: u.Host, GRPC: u.Scheme == schemeGRPC, Name: strings.TrimPrefix(u.Path, "/")}
	}
	if !utf8.ValidString(e.Name) {
		return bad("its name is no UTF-8")
	}
	_, port, err := net.SplitHostPort(e.Address)
	if err != nil {
		return bad("it has no port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return bad(fmt.Sprintf("%q is no port", port))
	}
	e.Member = e.Address
	return e, nil
}

// Resolver finds actors by name. Its methods may be called by many goroutines at once.
type Resolver interface {
	// Resolve finds the endpoints of a name, the oldest first. It may answer from
	// what it remembers. Where there is none, the error is an [Error] of
	// [CodeUnknownActor] with the names that are near.
	Resolve(ctx context.Context, name string) ([]Endpoint, error)
	// Forget has the next Resolve of a name ask afresh.
	Forget(name string)
	// Watch calls changed after Resolve's answer for a name has changed, as far as
	// the resolver notices, until stop is called. changed must not block.
	Watch(changed func(name string)) (stop func())
}

// Lister is a [Resolver] that knows all names.
type Lister interface {
	// List finds the endpoints whose names begin with a prefix, by name.
	List(ctx context.Context, prefix string) ([]Endpoint, error)
}

// Group is what one waits for: so many endpoints of a name.
type Group struct {
	Name  string
	Count int    // 0: 1
	JobID string // whose end ends the waiting; ""
}

// Coroner is a Resolver that knows why actors are gone, and whether they come back.
type Coroner interface {
	// Missing is why the actor of a name that was that member is not there; "" is any member. Its cause is
	// of CodeActorDead if it does not come back, and of CodeStopping while that is not decided.
	Missing(ctx context.Context, name, member string) *rpcerror.Error
}

// Awaiter is a [Resolver] that hears of the ends of jobs.
type Awaiter interface {
	// Await waits until there are as many endpoints as a group has, and fails at
	// once when its job has ended.
	Await(ctx context.Context, g Group) ([]Endpoint, error)
}

// MissingError is the error of a group that was not complete when the time was over; err is
// that of the last attempt to find it.
func MissingError(err error, have, want int) error {
	if err != nil {
		return err
	}
	return &rpcerror.Error{Code: rpcerror.CodeDeadline, Message: fmt.Sprintf("%d of %d are there", have, want)}
}
