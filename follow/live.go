package follow

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/session"
	"github.com/fray-ml/fray/state/logtime"
	"github.com/fray-ml/fray/state/store"
)

const (
	// maxLiveLogs is how many tasks are listened to at once; others come
	// through the store.
	maxLiveLogs = 256
	// liveRetry is when a host that did not answer is asked again.
	liveRetry = 5 * time.Second
	// endPatience is how long hosts may take to send the end of what ended tasks
	// wrote, before it is read from the store.
	endPatience = 2 * time.Second
)

// liveLogs listens to the hosts of tasks. Hosts that cannot be reached are left
// to the store, which has the same a little later.
type liveLogs struct {
	printer *logPrinter
	loaded  *configuration.Loaded
	signer  *clusterkeys.Command
	ctx     context.Context // of all that listens
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	conns map[hostAt]*grpc.ClientConn
	count int // of those that listen
}

// hostAt is where a host serves, and under which certificate.
type hostAt struct{ api, fingerprint string }

func newLiveLogs(ctx context.Context, l *configuration.Loaded, p *logPrinter) *liveLogs {
	v := &liveLogs{printer: p, loaded: l, signer: l.Stack.Signer(l.Document), conns: map[hostAt]*grpc.ClientConn{}}
	v.ctx, v.cancel = context.WithCancel(ctx)
	return v
}

// listen listens to the hosts of tasks that run and are read from the store so far.
func (v *liveLogs) listen(streams []*logStream) {
	now := time.Now()
	for _, s := range streams {
		if !s.running || s.place.State != schema.TaskRunning || !v.take(s, now) {
			continue
		}
		slice, host := s.place.Slice, s.place.Host
		v.running.Go(func() { v.leave(s, v.receive(s, slice, host)) })
	}
}

// take makes a stream live, unless it is, there are too many, or its host was
// asked a moment ago.
func (v *liveLogs) take(s *logStream, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.count >= maxLiveLogs {
		return false
	}
	v.printer.mu.Lock()
	defer v.printer.mu.Unlock()
	if s.live || s.whole || now.Before(s.retryAt) {
		return false
	}
	s.live = true
	v.count++
	return true
}

// leave gives a stream back to the store.
func (v *liveLogs) leave(s *logStream, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.count--
	v.printer.mu.Lock()
	defer v.printer.mu.Unlock()
	s.live, s.whole, s.retryAt = false, err == nil, time.Now().Add(liveRetry)
}

// receive prints what a task writes, until it has ended.
func (v *liveLogs) receive(s *logStream, slice string, host int) error {
	report, err := session.HostReport(v.ctx, v.loaded, slice, host)
	if err != nil {
		return err
	}
	if report.API == "" {
		return errors.New("the host serves nothing")
	}
	conn, err := v.conn(hostAt{report.API, report.Fingerprint}, report.At)
	if err != nil {
		return err
	}
	v.printer.mu.Lock()
	request := &clusterapi.LogsRequest{JobId: s.id, Attempt: int32(s.attempt), Task: int32(s.task), Offset: s.next, Follow: true}
	v.printer.mu.Unlock()
	stream, err := clusterapi.NewHostClient(conn).Logs(v.ctx, request)
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		v.printer.heard(s, store.LogPart{Data: m.GetData(), Offset: m.GetOffset(), Times: logtime.Parse(m.GetTimes())})
	}
}

// conn is the connection to a host, which its tasks share.
func (v *liveLogs) conn(at hostAt, reported time.Time) (*grpc.ClientConn, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.conns[at]; c != nil {
		return c, nil
	}
	c, err := dial.Open(at.api, at.fingerprint, v.loaded.Stack.HostToken(v.signer, reported))
	if err == nil {
		v.conns[at] = c
	}
	return c, err
}

// finish ends the listening, after a moment for what is on its way.
func (v *liveLogs) finish() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.running.Wait()
	}()
	select {
	case <-done:
	case <-v.ctx.Done():
	case <-time.After(endPatience):
	}
	v.cancel()
	<-done
}

// close ends it at once.
func (v *liveLogs) close() {
	v.cancel()
	v.running.Wait()
	for _, c := range v.conns {
		c.Close()
	}
}
