package gcp

import (
	"context"
	"time"
)

// troubleAfter is how long an operation takes by its failures when those who wait
// for it are told.
const troubleAfter = 5 * time.Second

// troubleKey is the key of a context's Trouble.
type troubleKey struct{}

// Trouble is told of an operation on a bucket or a key that keeps failing, once it
// takes seconds: why the last try failed, which is followed by another one. It is
// called before each further try, by many goroutines at once.
type Trouble func(err error)

// WithTrouble returns a context in which operations tell of trouble; nil tells nobody.
func WithTrouble(ctx context.Context, tell Trouble) context.Context {
	return context.WithValue(ctx, troubleKey{}, tell)
}

func tellTrouble(ctx context.Context, err error) {
	if tell, ok := ctx.Value(troubleKey{}).(Trouble); ok && tell != nil {
		tell(err)
	}
}
