package host

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Notices waits for a machine's notice that it is about to be taken away: an agent's
// Notices on Google Cloud. Its zero value is not usable; see NewNotices.
type Notices struct {
	server metadataServer
}

// NewNotices listens to the metadata server of this machine.
func NewNotices() Notices { return Notices{server: newMetadataServer()} }

// Where the metadata server reports it. Both take wait_for_change.
const (
	preemptedPath   = "instance/preempted"
	maintenancePath = "instance/maintenance-event"
)

// noticePause is the time between two tries where the metadata server fails.
const noticePause = time.Second

// Next waits until what is to come over the machine differs from last and says
// it in words; "" is nothing. A metadata server that does not answer says
// nothing, and is asked again.
func (n Notices) Next(ctx context.Context, last string) (string, error) {
	for {
		notice, err := n.poll(ctx, last)
		if err == nil && notice != last {
			return notice, nil
		}
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(noticePause):
		}
	}
}

// poll returns the present notice; where that is last, it waits for something to
// change first.
func (n Notices) poll(ctx context.Context, last string) (string, error) {
	paths := []string{preemptedPath, maintenancePath}
	said := make([]entry, len(paths))
	for i, path := range paths {
		e, err := n.server.get(ctx, path)
		if err != nil && !errors.Is(err, errNotDefined) {
			return "", err
		}
		said[i] = e
	}
	notice := noticeOf(said[0].value, said[1].value)
	if notice != last {
		return notice, nil
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := make(chan error, len(paths))
	var both sync.WaitGroup
	for i, path := range paths {
		both.Go(func() {
			_, err := n.server.change(waiting, path, said[i].etag)
			changes <- err
		})
	}
	err := <-changes
	cancel() // of the other one
	both.Wait()
	return last, err // the next read returns what it has become
}

// noticeOf is the text of what the two values mean for a host. A live migration
// is none of its business.
func noticeOf(preempted, maintenance string) string {
	switch {
	case preempted == "TRUE":
		return "preempted by Compute Engine"
	case maintenance == "TERMINATE_ON_HOST_MAINTENANCE":
		return "host maintenance: " + maintenance
	}
	return ""
}
