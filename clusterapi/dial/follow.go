package dial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/state/store"
)

// FollowConfig is which leader to follow, and how.
type FollowConfig struct {
	Store store.Store // where the lease is
	// Token makes what is sent with each call, for the time by the controller's
	// clock; nil: what the caller put into the call's metadata goes as it is.
	Token func(ctx context.Context, now time.Time) (string, error)
	// Patience is how long calls without a deadline wait for a controller
	// before they fail; 0: 30 s.
	Patience time.Duration
	// Recheck is how often to read the lease while calls wait for an answer;
	// 0: 5 s.
	Recheck time.Duration
	// Connect connects to a controller; nil: [Connect].
	Connect Connector
}

const (
	defaultPatience = 30 * time.Second
	defaultRecheck  = 5 * time.Second
)

// Times of looking for a leader.
const (
	readTimeout  = 10 * time.Second       // for one read of the lease
	readInterval = 200 * time.Millisecond // between two reads by this process
	retireGrace  = 2 * time.Second        // for answers of a controller that leads no more
)

// Following is a connection to the controller that leads. It reads the lease
// when it has to: at the first call, whenever a call fails because no controller
// answers or another one leads, and now and then while calls wait, since a controller
// that hangs sends nothing.
//
// Calls that one controller did not answer (UNAVAILABLE) are made again to the
// next until their deadline: what the cluster API changes, it changes once for
// a request_id. Streams are only begun again until they stand; later they end
// with UNAVAILABLE, and their readers begin anew where they were.
type Following struct {
	cfg FollowConfig

	mu      sync.Mutex
	leader  *leader    // nil: none was found yet
	trusted bool       // nothing has happened since that speaks against leader
	reading *leaseRead // under way
	readAt  time.Time
	patrols *time.Timer // a patrol is under way; nil: none is
	closed  bool
}

var _ grpc.ClientConnInterface = (*Following)(nil)

// leader is a controller and the connection to it; its fields but conn and
// lease belong to the Following's mutex.
type leader struct {
	lease   store.Lease
	sighted time.Time // when lease was read first
	conn    Conn
	calls   int
	retired bool
}

// leaseRead is one reading of the lease, for all calls that wait for it.
type leaseRead struct {
	done chan struct{}
	err  error
}

// Follow returns a connection; Close ends it.
func Follow(cfg FollowConfig) *Following {
	if cfg.Patience == 0 {
		cfg.Patience = defaultPatience
	}
	if cfg.Connect == nil {
		cfg.Connect = Connect
	}
	if cfg.Recheck == 0 {
		cfg.Recheck = defaultRecheck
	}
	return &Following{cfg: cfg}
}

// Close ends what is under way.
func (f *Following) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	if f.patrols != nil {
		f.patrols.Stop()
	}
	if f.leader == nil {
		return nil
	}
	return f.leader.conn.Close()
}

// Leader is the lease of the controller that leads, or why there is none.
func (f *Following) Leader(ctx context.Context) (store.Lease, error) {
	l, err := f.find(ctx)
	if err != nil {
		return store.Lease{}, err
	}
	defer f.release(l)
	return l.lease, nil
}

// Invoke makes a unary call.
func (f *Following) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return f.try(ctx, func(l *leader) error {
		err := l.conn.Invoke(ctx, method, args, reply, opts...)
		f.release(l)
		return err
	})
}

// NewStream begins a stream.
func (f *Following) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	var s *stream
	err := f.try(ctx, func(l *leader) error {
		inner, cancel := context.WithCancel(ctx)
		opened, err := l.conn.NewStream(inner, desc, method, opts...)
		if err != nil {
			cancel()
			f.release(l)
			return err
		}
		s = &stream{ClientStream: opened, follow: f, leader: l, ctx: inner, cancel: cancel, one: !desc.ServerStreams}
		context.AfterFunc(inner, func() { f.release(l) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

type noWait struct{}

// NoWait makes calls of a Following fail with [ErrNoController] as soon as
// no controller leads, where others wait for a leader.
func NoWait(ctx context.Context) context.Context { return context.WithValue(ctx, noWait{}, true) }

// try makes a call until a controller answers it.
func (f *Following) try(ctx context.Context, call func(*leader) error) error {
	var t trial
	rejected := false
	for {
		l, err := f.find(ctx)
		if err == nil {
			err = f.judge(ctx, l, call(l))
			if f.unknown(err) && !rejected { // by another clock, maybe: the lease shows
				rejected = true
				continue
			}
			if status.Code(err) != codes.Unavailable {
				return t.final(err)
			}
			lease, unrenewed := f.sighting(l)
			err = describe(err, lease, unrenewed)
		}
		if errors.Is(err, errClosed) {
			return status.Error(codes.Canceled, err.Error())
		}
		t.note(err)
		if errors.Is(err, ErrNoController) && ctx.Value(noWait{}) != nil {
			return t.failure(codes.Unavailable)
		}
		if err := t.wait(ctx, f.cfg.Patience); err != nil {
			return err
		}
	}
}

// judge notes whether an answer speaks against the leader. What broke off
// because the connection was retired is no cancellation by the caller.
func (f *Following) judge(ctx context.Context, l *leader, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if status.Code(err) == codes.Canceled && ctx.Err() == nil && l.retired && !f.closed {
		err = status.Error(codes.Unavailable, "this controller leads no more")
	}
	if (status.Code(err) == codes.Unavailable || f.unknown(err)) && f.leader == l {
		f.trusted = false
	}
	return err
}

// unknown reports whether a token of ours was rejected.
func (f *Following) unknown(err error) bool {
	return f.cfg.Token != nil && status.Code(err) == codes.Unauthenticated
}

var errClosed = errors.New("the connection to the controller was closed")

// find returns who leads, for one call, which ends with release.
func (f *Following) find(ctx context.Context) (*leader, error) {
	for {
		f.mu.Lock()
		switch {
		case f.closed:
			f.mu.Unlock()
			return nil, errClosed
		case f.trusted:
			l := f.leader
			l.calls++
			if f.patrols == nil {
				f.patrols = time.AfterFunc(f.cfg.Recheck, f.patrol)
			}
			f.mu.Unlock()
			return l, nil
		}
		under := f.readLocked()
		f.mu.Unlock()
		select {
		case <-under.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("read the lease: %w", ctx.Err())
		}
		if under.err != nil {
			return nil, under.err
		}
	}
}

// patrol reads the lease while calls wait for an answer.
func (f *Following) patrol() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.leader.calls == 0 {
		f.patrols = nil
		return
	}
	f.readLocked()
	f.patrols = time.AfterFunc(f.cfg.Recheck, f.patrol)
}

// readLocked returns the read that is under way, or begins one.
func (f *Following) readLocked() *leaseRead {
	if f.reading == nil {
		f.reading = &leaseRead{done: make(chan struct{})}
		go f.run(f.reading)
	}
	return f.reading
}

// run reads the lease for all calls that wait. No call owns it: one that gives up
// waiting leaves it to the others.
func (f *Following) run(l *leaseRead) {
	f.mu.Lock()
	early := readInterval - time.Since(f.readAt)
	f.mu.Unlock()
	if early > 0 {
		<-time.After(early)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	lease, err := store.ReadLease(ctx, f.cfg.Store)
	if err == nil || errors.Is(err, store.ErrNotFound) {
		err = servable(lease, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = f.adoptLocked(lease)
	}
	f.reading, f.readAt, l.err = nil, time.Now(), err
	close(l.done)
}

// adoptLocked connects to the holder of a lease, or keeps the connection if it
// is the same process.
func (f *Following) adoptLocked(lease store.Lease) error {
	old := f.leader
	if old != nil && old.lease.ControllerAddress == lease.ControllerAddress &&
		old.lease.ControllerFingerprint == lease.ControllerFingerprint {
		if c, ok := old.conn.(interface{ ResetConnectBackoff() }); ok {
			c.ResetConnectBackoff()
		}
		if lease.Nonce != old.lease.Nonce {
			old.sighted = time.Now()
		}
		old.lease, f.trusted = lease, true
		return nil
	}
	next := &leader{lease: lease, sighted: time.Now()}
	conn, err := f.cfg.Connect(lease.ControllerAddress, lease.ControllerFingerprint, f.token(next))
	if err != nil {
		return err
	}
	next.conn = conn
	if f.closed {
		_ = conn.Close() // nothing was called by it
		return errClosed
	}
	f.leader, f.trusted = next, true
	if old != nil {
		f.retireLocked(old)
	}
	return nil
}

// token makes a controller's tokens. Its clock is that of its lease as last read, and
// the time since, also while this machine slept: a leader that answers has renewed its
// lease a moment before.
func (f *Following) token(l *leader) Token {
	if f.cfg.Token == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		lease, since := f.sighting(l)
		return f.cfg.Token(ctx, lease.RenewedAt.Add(since))
	}
}

// sighting is a controller's lease, and for how long it has stood as it is, also
// while this machine slept.
func (f *Following) sighting(l *leader) (store.Lease, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	awake, all := time.Since(l.sighted), time.Now().Round(0).Sub(l.sighted.Round(0))
	return l.lease, max(awake, all)
}

// retireLocked closes a connection once its calls have ended, or after a grace:
// who does not lead any more may answer nothing any more.
func (f *Following) retireLocked(l *leader) {
	l.retired = true
	if l.calls == 0 {
		l.hangUp()
		return
	}
	time.AfterFunc(retireGrace, l.hangUp)
}

func (f *Following) release(l *leader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l.calls--
	if l.retired && l.calls == 0 {
		l.hangUp()
	}
}

// hangUp closes the connection: what is under way ends.
func (l *leader) hangUp() { _ = l.conn.Close() }

// stream reports to the Following how a stream ended.
type stream struct {
	grpc.ClientStream
	follow *Following
	leader *leader
	ctx    context.Context // ends with the stream
	cancel context.CancelFunc
	one    bool // there is one answer
}

func (s *stream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil && !s.one {
		return nil
	}
	err = s.follow.judge(s.ctx, s.leader, err)
	s.cancel()
	return err
}
