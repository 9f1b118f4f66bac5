// Package web serves the controller's page, its JSON API and its health over
// HTTP. It only reads: every answer is made of a [Snapshot] that the loop left,
// and of the logs in the store. Acting on the stack is the cluster API's.
//
// Start with [New] for the routes, frame.go for how snapshots become answers,
// guard.go for who may ask; the page itself is in static/.
package web

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/controller/metriclog"
	"github.com/fray-ml/fray/controller/usage"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

//go:embed static
var static embed.FS

// Logs is where what tasks write is read.
type Logs interface {
	// Read returns a part of what a task of a job, named by its id, has written:
	// from a byte on, or from the beginning of its last -from bytes. No data
	// means that there is none yet.
	Read(ctx context.Context, task LogStream, from int64) (store.LogPart, error)
}

// LogStream names what one task of one attempt writes.
type LogStream struct {
	Job     string // its id
	Attempt int
	Task    int
}

// Config is what a Server works with.
type Config struct {
	Source Source
	Logs   Logs
	// Profiles are those of tasks; nil: the page shows none.
	Profiles Profiles
	Metrics  http.Handler // at /metrics; nil: there are none
	Version  string       // of fray
	// Location is where the stack's state is: a directory or gs://BUCKET/PREFIX; "": not shown.
	Location string
	// Loopback says that only this machine can reach the server: requests must name this
	// machine as their host then, and no token is asked for unless Guarded is true.
	Loopback, Guarded bool
	// Verify accepts or refuses the token of a user; needed without Loopback, or with Guarded.
	Verify func(token string) error
	// Actors lists the actors of a stack; nil: the page shows none.
	Actors func(ctx context.Context, doc *state.Document) ([]actors.Actor, error)
	// History reads the events that the store remembers, oldest first; nil: only
	// what happens from now on is shown.
	History func(ctx context.Context) ([]state.Event, error)
	// Pace is the least time between two updates of a page; 0: a second.
	Pace time.Duration
	Now  func() time.Time // nil: time.Now
	Log  *slog.Logger     // of rejections
}

func (c *Config) validate() error {
	switch {
	case c.Source == nil || c.Logs == nil || c.Log == nil:
		return errors.New("web: no source, logs or log")
	case (!c.Loopback || c.Guarded) && c.Verify == nil:
		return errors.New("web: serving beyond this machine, or guarded, needs a way to verify tokens")
	}
	return nil
}

// Server answers the requests of pages and of programs.
type Server struct {
	cfg      Config
	handler  http.Handler
	sessions sessions
	current  atomic.Pointer[frame]
	journal  journal
	used     usage.Recorder
	metrics  metriclog.Reader
}

// New returns a Server that answers from what there is now. It keeps up with the
// source while [Server.Run] runs.
func New(cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Pace = cmp.Or(cfg.Pace, time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg}
	s.metrics.Read = func(ctx context.Context, job string, attempt int, from int64) (store.LogPart, error) {
		return cfg.Logs.Read(ctx, LogStream{Job: job, Attempt: attempt}, from)
	}
	s.current.Store(newFrame(cfg.Source.Snapshot(), 1))
	files, err := fs.Sub(static, "static")
	if err != nil {
		return nil, err
	}
	s.handler = s.guard(s.routes(files))
	return s, nil
}

func (s *Server) routes(files fs.FS) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET /readyz", s.readyz)
	if s.cfg.Metrics != nil {
		mux.Handle("GET /metrics", s.cfg.Metrics)
	}
	mux.HandleFunc("GET /api/v1/overview", s.overview)
	mux.HandleFunc("GET /api/v1/jobs", s.jobs)
	mux.HandleFunc("GET /api/v1/jobs/{id}", s.job)
	mux.HandleFunc("GET /api/v1/jobs/{id}/logs", s.logs)
	mux.HandleFunc("GET /api/v1/jobs/{id}/usage", s.usage)
	mux.HandleFunc("GET /api/v1/jobs/{id}/curves", s.curves)
	profileRoutes{kept: s.cfg.Profiles, find: s.jobID}.register(mux)
	mux.HandleFunc("GET /api/v1/actors", s.actors)
	mux.HandleFunc("GET /api/v1/slices", s.slices)
	mux.HandleFunc("GET /api/v1/reservations", s.reservations)
	mux.HandleFunc("GET /api/v1/shares", s.shares)
	mux.HandleFunc("GET /api/v1/graph", s.graph)
	mux.HandleFunc("GET /api/v1/events", s.events)
	mux.HandleFunc("GET /api/v1/updates", s.updates)
	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "there is nothing at "+r.URL.Path+"; docs/web-api.md lists what there is")
	})
	return mux
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// quietPace is how often a page is told that the loop steps though nothing changes.
const quietPace = 5 * time.Second

// Run follows the source until ctx ends.
func (s *Server) Run(ctx context.Context) {
	quiet := time.NewTicker(quietPace)
	defer quiet.Stop()
	remembered := s.cfg.History == nil
	for {
		// Taken before the snapshot, so that no change is missed.
		changed := s.cfg.Source.Changed()
		snap := s.cfg.Source.Snapshot()
		if snap != nil && !remembered {
			remembered = true
			s.remember(ctx, snap)
		}
		s.advance(snap)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-quiet.C:
			continue
		}
		pause := time.NewTimer(s.pace())
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// What a large stack's pages may cost.
const (
	paceFactor = 10 // a frame is shown so many times as long as it took to make
	maxPace    = 30 * time.Second
)

// pace is the time until the next frame: of a large stack more, so that pages take a tenth of a
// processor at most.
func (s *Server) pace() time.Duration {
	took := time.Duration(s.current.Load().took.Load())
	return max(s.cfg.Pace, min(paceFactor*took, maxPace))
}

// remember takes in the events of the time before the first snapshot.
func (s *Server) remember(ctx context.Context, snap *Snapshot) {
	past, err := s.cfg.History(ctx)
	if err != nil {
		s.cfg.Log.Warn("the page shows no events of the past", "error", err.Error())
		return
	}
	s.journal.remember(past[max(0, len(past)-keptEvents):], snap.Doc)
}
