package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func nolog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestLoopbackAnswersItsOwnNamesOnly(t *testing.T) {
	s := pageOf(t, family(), nil)
	tests := []struct {
		host string
		want int
	}{
		{"localhost:8000", http.StatusOK}, {"LOCALHOST", http.StatusOK}, {"127.0.0.1:8000", http.StatusOK}, {"127.9.9.9", http.StatusOK},
		{"[::1]:8000", http.StatusOK}, {"[::1]", http.StatusOK},
		{"evil.example:8000", http.StatusForbidden}, {"localhost.evil.example", http.StatusForbidden}, {"10.0.0.1", http.StatusForbidden},
		{"127.0.0.1.evil.example", http.StatusForbidden}, {"", http.StatusForbidden}, {"0.0.0.0:8000", http.StatusForbidden},
	}
	for _, test := range tests {
		t.Run(test.host, func(t *testing.T) {
			for _, path := range []string{"/", "/api/v1/overview", "/healthz"} {
				if w := ask(s, path, func(r *http.Request) { r.Host = test.host }); w.Code != test.want {
					t.Errorf("%s: got %d, want %d", path, w.Code, test.want)
				}
			}
		})
	}
}

// beyond is a server that others can reach, and what it logged.
func beyond(t *testing.T) (*Server, *bytes.Buffer, *time.Time) {
	now, logged := testTime, &bytes.Buffer{}
	s := pageOf(t, family(), func(c *Config) {
		c.Loopback, c.Now, c.Log = false, func() time.Time { return now }, slog.New(slog.NewTextHandler(logged, nil))
		c.Verify = func(token string) error {
			if token != "good" {
				return errRefused
			}
			return nil
		}
	})
	return s, logged, &now
}

func TestTokens(t *testing.T) {
	paths := []string{"/", "/app.js", "/healthz", "/readyz", "/metrics", "/api/v1/overview", "/api/v1/updates", "/api/v1/jobs/id-root/logs", "/api/v1/nothing"}
	tests := []struct {
		name string
		with func(*http.Request)
	}{
		{"nothing", func(*http.Request) {}},
		{"another token", func(r *http.Request) { r.Header.Set("Authorization", "Bearer bad") }},
		{"another scheme", func(r *http.Request) { r.Header.Set("Authorization", "Basic good") }},
		{"another parameter", func(r *http.Request) { r.URL.RawQuery = "token=bad" }},
		{"a made-up session", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: sessionCookie, Value: "x"}) }},
		{"a token as session", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: sessionCookie, Value: "good"}) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s, logged, _ := beyond(t)
			for _, path := range paths {
				logged.Reset()
				w := ask(s, path, test.with)
				if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" || len(w.Result().Cookies()) > 0 {
					t.Errorf("%s: got %d %v, want %d", path, w.Code, w.Header(), http.StatusUnauthorized)
				}
				if got := logged.String(); !strings.Contains(got, "request refused") || !strings.Contains(got, path) || strings.Contains(got, "token=good") || strings.Contains(got, "token=bad") {
					t.Errorf("%s: logged %q, want the rejection, without any token", path, got)
				}
			}
		})
	}
	s, _, _ := beyond(t)
	if w := ask(s, "/api/v1/overview", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer good")
		r.Host = "head-0.example:8000"
	}); w.Code != http.StatusOK {
		t.Errorf("with its token: got %d %s", w.Code, w.Body)
	}
}

// A page of this machine that is guarded asks for the token, and its sessions are those of one port.
func TestGuardedOnLoopback(t *testing.T) {
	s := pageOf(t, family(), func(c *Config) {
		c.Loopback, c.Guarded, c.Verify = true, true, func(token string) error {
			if token != "good" {
				return errRefused
			}
			return nil
		}
	})
	at := func(host string, cookies ...*http.Cookie) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = host
			for _, c := range cookies {
				r.AddCookie(c)
			}
		}
	}
	if w := ask(s, "/api/v1/overview", at("localhost:1")); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: got %d", w.Code)
	}
	if w := ask(s, "/?token=good", at("evil.example:1")); w.Code != http.StatusForbidden {
		t.Errorf("by another name of this machine: got %d", w.Code)
	}
	cookies := ask(s, "/?token=good", at("localhost:1")).Result().Cookies()
	if len(cookies) != 1 {
		t.Fatalf("got cookies %v", cookies)
	}
	if w := ask(s, "/api/v1/overview", at("localhost:1", cookies...)); w.Code != http.StatusOK {
		t.Errorf("with the session: got %d", w.Code)
	}
	if w := ask(s, "/api/v1/overview", at("localhost:2", cookies...)); w.Code != http.StatusUnauthorized {
		t.Errorf("with the session of another port: got %d", w.Code)
	}
}

// TestSession: the token of the first request opens a session, which outlives
// the token, and disappears from the address.
func TestSession(t *testing.T) {
	s, _, now := beyond(t)
	w := ask(s, "/?token=good&theme=dark", nil)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/?theme=dark" {
		t.Fatalf("got %d to %q, want %d to /?theme=dark", w.Code, w.Header().Get("Location"), http.StatusSeeOther)
	}
	cookies := w.Result().Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, "good") {
		t.Fatalf("got cookies %v, want a strict one that no script reads and that is not the token", cookies)
	}
	with := func(r *http.Request) { r.AddCookie(cookies[0]) }
	*now = now.Add(sessionLife - time.Second)
	if w := ask(s, "/api/v1/overview", with); w.Code != http.StatusOK {
		t.Errorf("with the session: got %d", w.Code)
	}
	*now = now.Add(time.Second)
	if w := ask(s, "/api/v1/overview", with); w.Code != http.StatusUnauthorized {
		t.Errorf("after the session: got %d, want %d", w.Code, http.StatusUnauthorized)
	}
	// An address that browsers take for another host's.
	for _, path := range []string{"//evil.example/", "/\\evil.example/", "///evil.example"} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
		r.URL.Path, r.URL.RawQuery = path, "token=good"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if to := w.Header().Get("Location"); strings.HasPrefix(to, "//") || strings.HasPrefix(to, "/\\") || !strings.HasPrefix(to, "/") {
			t.Errorf("%s: sent on to %q", path, to)
		}
	}
}

func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	first := s.open(testTime)
	for i := range maxSessions {
		s.open(testTime.Add(time.Duration(i+1) * time.Second))
	}
	if len(s.ends) != maxSessions || s.valid(first, testTime) {
		t.Errorf("got %d sessions, the first still valid: %v; want %d without it", len(s.ends), s.valid(first, testTime), maxSessions)
	}
	s.open(testTime.Add(2 * sessionLife))
	if len(s.ends) != 1 {
		t.Errorf("got %d sessions after all had ended, want 1", len(s.ends))
	}
}

func TestListeningBeyondThisMachineNeedsTokens(t *testing.T) {
	_, err := New(Config{Source: newSource(nil), Logs: &memory{}, Log: nolog()})
	if err == nil {
		t.Error("got a server without Loopback and Verify")
	}
}

func TestHeaders(t *testing.T) {
	s := pageOf(t, family(), nil)
	for _, path := range []string{"/", "/app.js", "/api/v1/overview", "/nothing"} {
		h := ask(s, path, nil).Header()
		policy := h.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "script-src 'self'") || strings.Contains(policy, "unsafe") ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %v", path, h)
		}
	}
	page := ask(s, "/", nil).Body.String()
	for _, bad := range []string{"https://", "http://", "<style", "style=", "onclick", "<script>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q: it must work offline and without inline code", bad)
		}
	}
}

func TestHealth(t *testing.T) {
	at := func(ago time.Duration, leads bool) *Snapshot {
		snap := family()
		snap.At, snap.Leads = testTime.Add(-ago), leads
		return snap
	}
	tests := []struct {
		name           string
		snap           *Snapshot
		healthy, ready int
		want           string
	}{
		{"before the first step", nil, 200, 503, "it has not stepped yet"},
		{"leads", at(time.Second, true), 200, 200, "the loop steps"},
		{"does not lead", at(time.Hour, false), 200, 503, "it waits for the lease"},
		{"is stuck", at(61*time.Second, true), 503, 200, "the last step ended 1m1s ago"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := pageOf(t, test.snap, nil)
			healthy, ready := ask(s, "/healthz", nil), ask(s, "/readyz", nil)
			if healthy.Code != test.healthy || ready.Code != test.ready || !strings.Contains(healthy.Body.String(), test.want) {
				t.Errorf("got %d %s and %d\nwant %d with %q and %d", healthy.Code, healthy.Body, ready.Code, test.healthy, test.want, test.ready)
			}
		})
	}
}
