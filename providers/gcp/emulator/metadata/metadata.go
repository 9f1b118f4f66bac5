// Package metadata is the metadata server of one machine of Google Cloud, for
// rehearsals and tests: what a machine asks to find out who it is, whether it
// is about to be taken away, and for tokens of its service account.
//
// It has the paths that fray's startup script and agent and Google's own client
// libraries use, and no others. It knows no cloud: the caller, which runs the
// machine, sets its values. Start with [New].
package metadata

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Facts are what a machine is.
type Facts struct {
	ID          uint64
	Name        string
	Project     string
	Zone        string
	Address     string // inside its network
	MachineType string
	Preemptible bool
	// Account is its service account; "": it has none.
	Account    string
	Attributes map[string]string
}

// Server answers for one machine.
type Server struct {
	mu              sync.Mutex
	values          map[string]*value // by path below computeMetadata/v1/
	changed         chan struct{}     // closed at the next change of any value
	guestAttributes map[string]string // by "namespace/key"
	closed          chan struct{}
}

type value struct {
	text    string
	version int
}

// prefix of every path.
const prefix = "/computeMetadata/v1/"

// Values that a machine's fate changes.
const (
	preempted          = "instance/preempted"
	maintenance        = "instance/maintenance-event"
	guestAttributePath = "instance/guest-attributes/"
	accountPath        = "instance/service-accounts/"
)

// New is the server of a machine that nothing has come over yet.
func New(f Facts) *Server {
	s := &Server{
		values: map[string]*value{}, changed: make(chan struct{}), guestAttributes: map[string]string{}, closed: make(chan struct{}),
	}
	const number = "1"
	texts := map[string]string{
		"project/project-id":               f.Project,
		"project/numeric-project-id":       number,
		"instance/id":                      strconv.FormatUint(f.ID, 10),
		"instance/name":                    f.Name,
		"instance/hostname":                fmt.Sprintf("%s.%s.c.%s.internal", f.Name, f.Zone, f.Project),
		"instance/zone":                    "projects/" + number + "/zones/" + f.Zone,
		"instance/machine-type":            "projects/" + number + "/machineTypes/" + f.MachineType,
		"instance/network-interfaces/0/ip": f.Address,
		"instance/scheduling/preemptible":  strings.ToUpper(strconv.FormatBool(f.Preemptible)),
		preempted:                          "FALSE",
		maintenance:                        "NONE",
	}
	for name, text := range f.Attributes {
		texts["instance/attributes/"+name] = text
	}
	if f.Account != "" {
		for _, name := range []string{"default", f.Account} {
			texts[accountPath+name+"/email"] = f.Account
			texts[accountPath+name+"/aliases"] = "default"
			texts[accountPath+name+"/scopes"] = "https://www.googleapis.com/auth/cloud-platform"
		}
	}
	for path, text := range texts {
		s.values[path] = &value{text: text, version: 1}
	}
	return s
}

// Close ends the requests that wait for a change.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
}

// Preempt announces that the machine is being taken away.
func (s *Server) Preempt() { s.set(preempted, "TRUE") }

// Maintain announces a maintenance of the machine, such as
// "TERMINATE_ON_HOST_MAINTENANCE"; "": none.
func (s *Server) Maintain(event string) {
	if event == "" {
		event = "NONE"
	}
	s.set(maintenance, event)
}

// SetAttribute changes an attribute of the machine.
func (s *Server) SetAttribute(name, text string) { s.set("instance/attributes/"+name, text) }

// GuestAttributes are the guest attributes that the machine has set, by "namespace/key".
func (s *Server) GuestAttributes() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.guestAttributes)
}

func (s *Server) set(path, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.values[path]
	switch {
	case v == nil:
		s.values[path] = &value{text: text, version: 1}
	case v.text == text:
		return
	default:
		v.text = text
		v.version++
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Metadata-Flavor", "Google")
	w.Header().Set("Server", "Metadata Server for VM")
	path, below := strings.CutPrefix(r.URL.Path, prefix)
	switch {
	case !below && r.URL.Path == "/": // how libraries find out whether there is one
		fmt.Fprintln(w, "computeMetadata/")
	case !below:
		http.NotFound(w, r)
	case r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "":
		http.Error(w, "Missing required header Metadata-Flavor: Google", http.StatusForbidden)
	case r.Method == http.MethodPut && strings.HasPrefix(path, guestAttributePath):
		s.putGuestAttribute(w, r, strings.TrimPrefix(path, guestAttributePath))
	case r.Method != http.MethodGet:
		http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
	case strings.HasPrefix(path, accountPath) && strings.HasSuffix(path, "/token"):
		s.token(w, r, strings.TrimSuffix(path, "/token"))
	case strings.HasSuffix(path, "/"):
		s.list(w, r, path)
	default:
		s.get(w, r, path)
	}
}

// guestAttributeSwitch is the attribute without which a machine may set no guest attributes.
const guestAttributeSwitch = "enable-guest-attributes"

func (s *Server) putGuestAttribute(w http.ResponseWriter, r *http.Request, name string) {
	text, err := io.ReadAll(io.LimitReader(r.Body, 256<<10))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	allowed := s.values["instance/attributes/"+guestAttributeSwitch]
	if allowed == nil || !strings.EqualFold(allowed.text, "TRUE") {
		http.Error(w, "Guest attributes are not enabled", http.StatusForbidden)
		return
	}
	s.guestAttributes[name] = string(text)
}

// token answers for a service account. The token is worth nothing, but has the
// form of one.
func (s *Server) token(w http.ResponseWriter, r *http.Request, account string) {
	s.mu.Lock()
	email := s.values[account+"/email"]
	s.mu.Unlock()
	if email == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"ya29.emulated-%s","expires_in":%d,"token_type":"Bearer"}`, email.text, int(time.Hour.Seconds()))
}

// list names what is below a path.
func (s *Server) list(w http.ResponseWriter, r *http.Request, path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for each := range s.values {
		if rest, ok := strings.CutPrefix(each, path); ok {
			name, _, deeper := strings.Cut(rest, "/")
			if deeper {
				name += "/"
			}
			names[name] = true
		}
	}
	if len(names) == 0 {
		http.NotFound(w, r)
		return
	}
	fmt.Fprintln(w, strings.Join(slices.Sorted(maps.Keys(names)), "\n"))
}

// get answers with a value, with wait_for_change once it is another than that
// of last_etag, or than now.
func (s *Server) get(w http.ResponseWriter, r *http.Request, path string) {
	query := r.URL.Query()
	var timeout <-chan time.Time
	if seconds, err := strconv.Atoi(query.Get("timeout_sec")); err == nil && seconds > 0 {
		timeout = time.After(time.Duration(seconds) * time.Second)
	}
	last, waits := query.Get("last_etag"), query.Get("wait_for_change") == "true"
	for {
		s.mu.Lock()
		v, changed := s.values[path], s.changed
		text, etag := "", "0"
		if v != nil {
			text, etag = v.text, fmt.Sprintf("%016x", v.version)
		}
		s.mu.Unlock()
		if v == nil {
			http.NotFound(w, r)
			return
		}
		if last == "" {
			last = etag
		}
		if !waits || etag != last {
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Type", "application/text")
			fmt.Fprint(w, text)
			return
		}
		select {
		case <-changed:
		case <-timeout:
			waits = false
		case <-r.Context().Done():
			return
		case <-s.closed:
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
			return
		}
	}
}
