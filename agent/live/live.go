// Package live connects a host and its packed tasks to the controller that leads, by the
// address and the fingerprint in the lease and with the host's own key: reports go there and
// assignments come from there while the stream lasts.
//
// Of a slice with several hosts the first that can speaks for the others, see election.go.
//
// It leaves out the stream itself, which is hostlink's, and the store, which package mailbox
// uses beside it. Start with [Open].
package live

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/hostlink"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state/store"
)

// Identity is a host and the key by which it is known.
type Identity struct {
	Slice string
	Host  int
	Key   ed25519.PrivateKey
}

// Config is which host connects.
type Config struct {
	Store store.Store // where the lease is
	Identity
	// Authorities takes in which authorities certify actors, as an object of the store has it.
	Authorities func(object store.Generation, data []byte)
	// Stack is the mark of the host's stack, "" while the host does not know it.
	Stack func() string
	// Belongs takes in the mark of the host's stack as the lease has it.
	Belongs func(stack string)
	// Connect connects to the controller and to other hosts of the slice; nil: [dial.Connect].
	Connect dial.Connector
	Log     *slog.Logger
}

// Link is the connection of a machine.
type Link struct {
	cfg    Config
	client *hostlink.Client
	leased atomic.Pointer[string] // the stack's mark as the lease has it; nil: it was not needed
	leads  atomic.Pointer[leads]  // the lease when a relay was sought last; nil: none was
}

// tokenLife is how long a token holds with which a stream begins.
const tokenLife = 5 * time.Minute

// connectPatience is how long a controller is sought for one try.
const connectPatience = 5 * time.Second

// Open returns a link, which connects while Run runs.
func Open(cfg Config) *Link {
	if cfg.Connect == nil {
		cfg.Connect = dial.Connect
	}
	l := &Link{cfg: cfg}
	l.client = hostlink.NewClient(hostlink.Config{Dial: l.dial, Relays: newRelays(l), Authorities: cfg.Authorities, Log: cfg.Log})
	return l
}

// Run keeps the stream until ctx ends.
func (l *Link) Run(ctx context.Context) { l.client.Run(ctx) }

// Relay speaks for other hosts of the slice while the link's stream goes to the controller.
func (l *Link) Relay() *hostlink.Relay { return hostlink.NewRelay(l.client) }

// Mailbox is what a host has of its assignment.
type Mailbox interface {
	Known() store.Generation
	Push(object store.Generation, data []byte)
}

// Host adds a host to the link: that of the link itself, or a packed task of the machine.
func (l *Link) Host(who Identity, box Mailbox) *hostlink.Host {
	cfg := hostlink.HostConfig{
		Slice: who.Slice, Host: who.Host,
		Assignment: box.Known, Assigned: box.Push,
		Relayed: func(key string) (string, error) { return l.vouch(who, key) },
	}
	if who.Slice != l.cfg.Slice || who.Host != l.cfg.Host {
		// The controller's clock is not at hand. A token that does not hold leaves the packed
		// task to the store.
		cfg.Token = func() (string, error) { return l.mint(who, time.Now()) }
	}
	return l.client.Host(cfg)
}

var errNoStack = errors.New("the controller states no stack, and has given this host nothing to do yet")

// stack is the mark of the host's stack, "" while it is not known.
func (l *Link) stack() string {
	if stack := l.cfg.Stack(); stack != "" {
		return stack
	}
	if stack := l.leased.Load(); stack != nil {
		return *stack
	}
	return ""
}

// belongs takes in the mark of the stack as the lease has it.
func (l *Link) belongs(stack string) {
	if stack == "" {
		return
	}
	l.leased.Store(&stack)
	if l.cfg.Belongs != nil && l.cfg.Stack() == "" {
		l.cfg.Belongs(stack)
	}
}

func (l *Link) mint(who Identity, now time.Time) (string, error) {
	return l.sign(who, token.Claims{Subject: token.SubjectHost, Expires: now.Add(tokenLife)})
}

func (l *Link) sign(who Identity, claims token.Claims) (string, error) {
	stack := l.stack()
	if stack == "" {
		return "", errNoStack
	}
	signer, err := token.NewSigner(who.Key, stack, token.ID{Role: token.RoleHost, Slice: who.Slice, Host: who.Host})
	if err != nil {
		return "", err
	}
	return signer.Mint(claims)
}

// dial connects to the controller that leads now.
func (l *Link) dial(ctx context.Context) (hostlink.Conn, error) {
	if l.stack() == "" {
		lease, err := store.ReadLease(ctx, l.cfg.Store)
		if err != nil {
			return nil, err
		}
		if lease.Stack == "" {
			return nil, errNoStack
		}
		l.belongs(lease.Stack)
	}
	return leader{dial.Follow(dial.FollowConfig{
		Store: l.cfg.Store, Connect: l.cfg.Connect,
		Patience: connectPatience, Recheck: time.Hour, // a stream that hangs is found out without
		Token: func(_ context.Context, now time.Time) (string, error) { return l.mint(l.cfg.Identity, now) },
	})}, nil
}

// leader is a connection that does not wait for a controller.
type leader struct{ *dial.Following }

// NewStream begins a stream if a controller leads.
func (l leader) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return l.Following.NewStream(dial.NoWait(ctx), desc, method, opts...)
}
