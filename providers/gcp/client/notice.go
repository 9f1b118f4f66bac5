package client

import (
	"context"
	"time"
)

// noticeAfter is how long an operation fails before its caller gets a notice.
const noticeAfter = 5 * time.Second

// noticeKey is the key of a context's RetryNotice.
type noticeKey struct{}

// RetryNotice receives the error of each failed try of an operation on a bucket or a
// key that has failed for seconds, before the next try begins. Many goroutines call
// it at once.
type RetryNotice func(err error)

// WithRetryNotice returns a context whose operations report the tries that fail to
// notice; nil reports none.
func WithRetryNotice(ctx context.Context, notice RetryNotice) context.Context {
	return context.WithValue(ctx, noticeKey{}, notice)
}

func giveNotice(ctx context.Context, err error) {
	if notice, ok := ctx.Value(noticeKey{}).(RetryNotice); ok && notice != nil {
		notice(err)
	}
}
