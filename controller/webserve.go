package controller

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/actors"
	"github.com/fray-ml/fray/controller/apiserver"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Limits of clients.
const (
	readTimeout = 10 * time.Second // to send a request's headers
	idleTimeout = 2 * time.Minute  // between two requests
	maxHeader   = 64 << 10         // bytes
)

// webService is what the page is served by.
type webService struct {
	Config
	verifier *token.Verifier
	metrics  http.Handler
}

// webServer serves the page, the metrics and the health of a controller.
type webServer struct {
	url     string
	http    *http.Server
	running sync.WaitGroup
	end     context.CancelFunc
}

// serveWeb begins to serve at an address; where that is taken, at another port
// of the same host: a second stack on one machine is nothing unusual.
//
// An address beyond this machine is served with TLS, under the certificate of the
// cluster API, since its clients send tokens.
func serveWeb(ctx context.Context, cfg webService, source web.Source, certificate tls.Certificate) (*webServer, error) {
	listener, err := cfg.Service.listen()
	if err != nil {
		return nil, fmt.Errorf("serve the web page: %w", err)
	}
	tcp, _ := listener.Addr().(*net.TCPAddr)
	loopback, scheme := tcp != nil && tcp.IP.IsLoopback(), "http"
	handler, err := web.New(web.Config{
		Source: source, Logs: web.StoredLogs{Store: cfg.Store}, Profiles: web.StoredProfiles{Store: cfg.Store}, Metrics: cfg.metrics, Version: cfg.Version, Location: cfg.Store.Location(),
		Loopback: loopback, Guarded: cfg.Service.PageToken != "", Verify: cfg.verifyUser, Log: cfg.Log,
		Actors: func(ctx context.Context, doc *state.Document) ([]actors.Actor, error) {
			return actors.List(ctx, cfg.Store, doc)
		},
		History: (&store.EventReader{Store: cfg.Store}).Next,
	})
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	address, err := advertised(listener.Addr(), cfg.Service.Advertise)
	if err != nil {
		end()
		return nil, errors.Join(err, listener.Close())
	}
	if !loopback {
		scheme, listener = "https", tls.NewListener(listener, dial.ServerTLS(certificate))
	}
	w := &webServer{url: scheme + "://" + address + "/", end: end}
	w.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	w.running.Go(func() { handler.Run(ctx) })
	w.running.Go(func() {
		if err := w.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			cfg.Log.Error("the web page is not served any more", "error", err.Error())
		}
	})
	return w, nil
}

// listen is the listener of the page.
func (s Service) listen() (net.Listener, error) {
	if s.Page != nil {
		return s.Page, nil
	}
	listener, err := net.Listen("tcp", s.HTTP)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(s.HTTP)
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	return listener, err
}

func (w *webServer) stop() {
	w.end() // streams, too
	ctx, cancel := context.WithTimeout(context.Background(), apiserver.StopGrace)
	defer cancel()
	if err := w.http.Shutdown(ctx); err != nil {
		_ = w.http.Close()
	}
	w.running.Wait()
}

// verifyUser accepts the token of a user of this stack, and that of the page.
func (c webService) verifyUser(text string) error {
	if own := c.Service.PageToken; own != "" && subtle.ConstantTimeCompare([]byte(text), []byte(own)) == 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), apiserver.VerifyTimeout)
	defer cancel()
	if c.verifier == nil {
		return errors.New("this controller cannot check tokens")
	}
	claims, err := c.verifier.Verify(ctx, text, time.Now())
	if err == nil && claims.Subject != token.SubjectUser {
		err = fmt.Errorf("it is the token of a %s, not of a user", claims.Subject)
	}
	return err
}
