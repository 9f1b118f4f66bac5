package web

import (
	"crypto/rand"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// sessionCookie holds what a page shows after its first request, which
	// brought a token: tokens are short-lived, pages stay open.
	sessionCookie = "fray_session"
	sessionLife   = 12 * time.Hour
	maxSessions   = 1000
)

// guard lets through what may ask and says what browsers may do with the answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "+
			"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case s.cfg.Loopback && !namesThisMachine(r.Host):
			// Another site's name that was made to lead here (DNS rebinding).
			s.refuse(w, r, http.StatusForbidden, "this page is for this machine only: ask for it at localhost")
		case (!s.cfg.Loopback || s.cfg.Guarded) && !s.admit(w, r):
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// namesThisMachine reports whether a Host header names the loopback interface.
func namesThisMachine(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.IsLoopback()
}

// admit reports whether a request may be answered; otherwise it has answered it.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) bool {
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if err := s.cfg.Verify(token); err != nil {
			s.refuse(w, r, http.StatusUnauthorized, "the token is refused: "+err.Error())
			return false
		}
		return true
	}
	if token := r.URL.Query().Get("token"); token != "" {
		return s.begin(w, r, token)
	}
	if cookie, err := r.Cookie(s.cookie(r)); err == nil && s.sessions.valid(cookie.Value, s.cfg.Now()) {
		return true
	}
	s.refuse(w, r, http.StatusUnauthorized, "a token is needed: send \"Authorization: Bearer TOKEN\", or open the page with ?token=TOKEN")
	return false
}

// cookie is the name of the cookie with a session. Browsers send cookies of one host to all of its ports, and
// several stacks may have their pages on one machine.
func (s *Server) cookie(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil && s.cfg.Loopback {
		return sessionCookie + "_" + port
	}
	return sessionCookie
}

// begin opens a session for a token in the address, and sends pages on to an
// address without it, which may be kept and shown.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, token string) bool {
	if err := s.cfg.Verify(token); err != nil {
		s.refuse(w, r, http.StatusUnauthorized, "the token is refused: "+err.Error())
		return false
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.cookie(r), Value: s.sessions.open(s.cfg.Now()), Path: "/", MaxAge: int(sessionLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil,
	})
	if strings.HasPrefix(r.URL.Path, "/api/") {
		return true
	}
	query := r.URL.Query()
	query.Del("token")
	// Of the path only: an address of another host would send the session away.
	to := url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/\\"), RawQuery: query.Encode()}
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
	return false
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	s.cfg.Log.Warn("request refused", "peer", r.RemoteAddr, "host", r.Host, "path", r.URL.Path, "why", why)
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="fray"`)
	}
	fail(w, status, why)
}

// sessions are those that were opened with a token, and until when they hold.
type sessions struct {
	mu   sync.Mutex
	ends map[string]time.Time
}

func (s *sessions) open(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends == nil {
		s.ends = map[string]time.Time{}
	}
	oldest, at := "", time.Time{}
	for id, end := range s.ends {
		if !now.Before(end) {
			delete(s.ends, id)
		} else if oldest == "" || end.Before(at) {
			oldest, at = id, end
		}
	}
	if len(s.ends) >= maxSessions {
		delete(s.ends, oldest)
	}
	id := rand.Text()
	s.ends[id] = now.Add(sessionLife)
	return id
}

func (s *sessions) valid(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.ends[id]
	return ok && now.Before(end)
}

func plain(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
