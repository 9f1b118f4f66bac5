package chaos

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// front is a proxy before a server, which does to its connections what networks do.
type front struct {
	address string

	mu       sync.Mutex
	listener net.Listener // nil: connections are refused
	backend  string       // "": they are reset
	pipes    map[*pipe]struct{}
	delay    time.Duration // of every chunk
	stalled  chan struct{} // closed when bytes flow again; nil: they do
	muted    bool          // only what the server says is stalled
	closed   bool
}

// pipe is one connection.
type pipe struct {
	client, server *net.TCPConn

	mu     sync.Mutex
	budget int // bytes that still pass before it is cut; negative: no limit
}

func newFront(backend string) (*front, error) {
	f := &front{address: "127.0.0.1:0", backend: backend, pipes: map[*pipe]struct{}{}}
	return f, f.open()
}

// open takes connections, on the port that it had.
func (f *front) open() error {
	l, err := net.Listen("tcp", f.address)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.address, f.listener = l.Addr().String(), l
	f.mu.Unlock()
	go f.accept(l)
	return nil
}

func (f *front) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go f.serve(c.(*net.TCPConn))
	}
}

// refuse closes the port, as of a machine where nothing listens.
func (f *front) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listener != nil {
		f.listener.Close()
		f.listener = nil
	}
}

// lead says where connections go from now on; those that there are stay.
func (f *front) lead(backend string) error {
	f.mu.Lock()
	f.backend = backend
	open := f.listener != nil
	f.mu.Unlock()
	if open || backend == "" {
		return nil
	}
	return f.open()
}

func (f *front) close() {
	f.refuse()
	f.resume()
	f.cut(0)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

func (f *front) serve(client *net.TCPConn) {
	f.mu.Lock()
	backend := f.backend
	f.mu.Unlock()
	c, err := net.DialTimeout("tcp", backend, 5*time.Second)
	if err != nil {
		reset(client)
		return
	}
	p := &pipe{client: client, server: c.(*net.TCPConn), budget: -1}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		p.reset()
		return
	}
	f.pipes[p] = struct{}{}
	f.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { f.copy(p, p.client, p.server, true) })
	both.Go(func() { f.copy(p, p.server, p.client, false) })
	both.Wait()
	_ = client.Close()
	c.Close()
	f.mu.Lock()
	delete(f.pipes, p)
	f.mu.Unlock()
}

// copy passes on what one end sends, until it ends.
func (f *front) copy(p *pipe, to, from *net.TCPConn, answers bool) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		f.hold(answers)
		if n > 0 {
			pass, cut := p.spend(n)
			if _, failed := to.Write(buffer[:pass]); failed != nil || cut {
				p.reset()
				return
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			_ = to.CloseWrite()
			return
		default:
			p.reset()
			return
		}
	}
}

// hold waits as long as bytes are to be held up.
func (f *front) hold(answers bool) {
	f.mu.Lock()
	delay, stalled := f.delay, f.stalled
	through := f.muted && !answers
	f.mu.Unlock()
	if stalled != nil && !through {
		<-stalled
	}
	if delay > 0 {
		<-time.After(delay)
	}
}

// spend says how many of n bytes pass, and whether the connection ends then.
func (p *pipe) spend(n int) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.budget < 0 {
		return n, false
	}
	pass = min(n, p.budget)
	p.budget -= pass
	return pass, p.budget == 0
}

// cut breaks all connections once so many bytes more have passed, 0: at once.
func (f *front) cut(after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range f.pipes {
		if after == 0 {
			p.reset()
			continue
		}
		p.mu.Lock()
		p.budget = after
		p.mu.Unlock()
	}
}

// stall lets no byte through until resume. A server that is only muted gets calls,
// and no caller its answers.
func (f *front) stall(mute bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled == nil {
		f.stalled, f.muted = make(chan struct{}), mute
	}
}

func (f *front) resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stalled != nil {
		close(f.stalled)
		f.stalled = nil
	}
}

func (f *front) slow(delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay = delay
}

func (p *pipe) reset() {
	reset(p.client)
	reset(p.server)
}

// reset ends a connection so that the other end reads an error.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
