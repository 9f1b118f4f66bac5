package keys

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state/store"
)

// CommandPrefix is below which commands publish their keys.
const CommandPrefix = "signers/"

// CommandKey is where the key of a sum is published.
func CommandKey(sum string) string { return CommandPrefix + sum + ".json" }

// published is the object of a command's key.
type published struct {
	Key     []byte    `json:"key"` // Ed25519
	User    string    `json:"user"`
	Host    string    `json:"host"` // on which the command runs, for people
	PID     int       `json:"pid"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// ErrMayNotWrite means that a command could not publish its key, which is how it
// proves that its user may act on the stack.
var ErrMayNotWrite = errors.New("this user may not write to the stack's store")

// Command signs the tokens of a user's command. It publishes a key when the first
// one is needed, and another one before that expires; the private halves are in
// memory only. It may be used concurrently.
type Command struct {
	store       store.Store
	stack, user string

	mu     sync.Mutex
	signer *token.Signer // nil: none is published
	from   time.Time     // by the clock of who judges, as far as that is known here
	until  time.Time
	denied error // that the user may not write; it is not tried again
}

// NewCommand returns what signs for a user of the stack of a mark.
func NewCommand(s store.Store, stack, user string) *Command {
	return &Command{store: s, stack: stack, user: user}
}

// Token returns a token for now, by the clock of who will judge it.
func (c *Command) Token(ctx context.Context, now time.Time) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied != nil {
		return "", c.denied
	}
	if c.signer == nil || now.Before(c.from) || now.Add(token.UserLife).After(c.until) {
		if err := c.publishLocked(ctx, now); err != nil {
			return "", err
		}
	}
	return c.signer.Mint(token.Claims{Subject: token.SubjectUser, User: c.user, Expires: now.Add(token.UserLife)})
}

func (c *Command) publishLocked(ctx context.Context, now time.Time) error {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return fmt.Errorf("publish this command's key: %w", err)
	}
	signer, err := token.NewSigner(private, c.stack, token.ID{Role: token.RoleCommand})
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	// To the second, as tokens are.
	from := now.UTC().Truncate(time.Second)
	until := from.Add(token.CommandLife)
	data, err := json.Marshal(published{Key: signer.Public(), User: c.user, Host: host, PID: os.Getpid(), Created: from, Expires: until})
	if err != nil {
		return fmt.Errorf("publish this command's key: %w", err)
	}
	key := CommandKey(signer.ID().Sum)
	if _, err := c.store.Put(ctx, key, data, store.Absent); err != nil {
		// A write whose reply was lost may have happened, and no other command has this name.
		if object, readErr := c.store.Get(ctx, key); readErr != nil || string(object.Data) != string(data) {
			err = fmt.Errorf("publish this command's key: %w", denied(err))
			if errors.Is(err, ErrMayNotWrite) {
				c.denied = err
			}
			return err
		}
	}
	c.signer, c.from, c.until = signer, from, until
	return nil
}

// denied is an ErrMayNotWrite if a write failed for want of rights.
func denied(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w, and a user who may only read it can neither call the controller nor run anything on hosts: %w", ErrMayNotWrite, err)
	}
	return err
}

// Prune removes the keys of commands that have expired by the leader's clock, and
// all others too if all is set: who was removed from the store's writers may have
// published one a moment before.
func Prune(ctx context.Context, s store.Store, now time.Time, all bool) (removed int, err error) {
	objects, err := s.List(ctx, CommandPrefix)
	if err != nil {
		return 0, fmt.Errorf("list the keys of commands: %w", err)
	}
	for _, o := range objects {
		if !all {
			object, err := s.Get(ctx, o.Key)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return removed, fmt.Errorf("read a command's key: %w", err)
			}
			var p published
			// One that cannot be read is of no use to any command.
			if json.Unmarshal(object.Data, &p) == nil && now.Before(p.Expires.Add(pruneGrace)) && p.Expires.Sub(now) <= 2*token.CommandLife {
				continue
			}
		}
		if err := s.Delete(ctx, o.Key); err != nil && !errors.Is(err, store.ErrNotFound) {
			return removed, fmt.Errorf("remove a command's key: %w", err)
		}
		removed++
	}
	return removed, nil
}

// pruneGrace is how long an expired key stays: its command may learn that it has
// expired, rather than that it is not known.
const pruneGrace = 10 * time.Minute
