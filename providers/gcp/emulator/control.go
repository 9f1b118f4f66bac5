package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// World is the state of an emulated cloud at one moment, for people and tests.
type World struct {
	Now      time.Time        `json:"now"`
	Groups   []WorldGroup     `json:"groups"`
	Queued   []WorldQueued    `json:"queued"`
	Capacity []cloud.Capacity `json:"capacity"` // who holds it stands in Groups
}

// WorldGroup is a node, a machine or a managed instance group.
type WorldGroup struct {
	Kind    cloud.Kind  `json:"kind"`
	Project string      `json:"project"`
	Zone    string      `json:"zone"`
	Name    string      `json:"name"`
	Type    string      `json:"type"`
	Units   int         `json:"units"` // chips or cores
	Tier    cloud.Tier  `json:"tier"`
	State   cloud.State `json:"state"`
	Shown   cloud.State `json:"shown"` // what the API reports, where it is something else
	Queued  string      `json:"queued_resource,omitempty"`
	Hosts   []WorldHost `json:"hosts"`
	Created time.Time   `json:"created"`
}

// WorldHost is one machine of a group.
type WorldHost struct {
	ID      string `json:"id"`
	Address string `json:"address"`
	On      bool   `json:"on"`
	Bad     bool   `json:"bad,omitempty"`
}

// WorldQueued is a queued resource.
type WorldQueued struct {
	Project string             `json:"project"`
	Zone    string             `json:"zone"`
	Name    string             `json:"name"`
	State   cloud.RequestState `json:"state"`
	Error   string             `json:"error,omitempty"`
}

// World is the state of the cloud now.
func (e *Emulator) World() World {
	w := World{Now: e.cloud.Clock().Now(), Groups: []WorldGroup{}, Queued: []WorldQueued{}, Capacity: e.cloud.Capacity()}
	for _, g := range e.cloud.All() {
		shown := WorldGroup{
			Kind: g.Kind, Project: g.Project, Zone: g.Zone, Name: g.Name, Type: g.Type, Units: g.Units, Tier: g.Tier,
			State: g.State, Shown: g.Shown, Queued: g.Queued, Created: g.Created, Hosts: []WorldHost{},
		}
		for _, h := range g.Hosts {
			shown.Hosts = append(shown.Hosts, WorldHost{ID: h.ID, Address: h.Address, On: h.On, Bad: h.Bad})
		}
		w.Groups = append(w.Groups, shown)
	}
	for _, r := range e.cloud.AllRequests() {
		shown := WorldQueued{Project: r.Project, Zone: r.Zone, Name: r.Name, State: r.State}
		if r.Err != nil {
			shown.Error = r.Err.Message
		}
		w.Queued = append(w.Queued, shown)
	}
	return w
}

// control serves /emulator/: the state, and what can be made to happen, each with
// its arguments in the query or a form.
func (e *Emulator) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /emulator/state", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(e.World()) // fails only without a reader
	})
	for name, do := range map[string]func(*http.Request) error{
		"preempt": e.onGroup(func(k cloud.Key, r *http.Request) error { return e.cloud.Preempt(k, r.FormValue("silent") != "true") }),
		"kill": e.onGroup(func(k cloud.Key, r *http.Request) error {
			worker, err := strconv.Atoi(r.FormValue("worker"))
			if err != nil {
				return errors.New("worker: want the number of a host, the first is 0")
			}
			return e.cloud.KillHost(k, worker)
		}),
		"maintain": e.onGroup(func(k cloud.Key, _ *http.Request) error { return e.cloud.Maintain(k) }),
		"stockout": lasting(func(d time.Duration, r *http.Request) error {
			return e.cloud.Stockout(r.FormValue("zone"), r.FormValue("type"), d)
		}),
		"outage":  lasting(func(d time.Duration, r *http.Request) error { return e.cloud.Outage(r.FormValue("zone"), d) }),
		"list":    e.misreadList,
		"calm":    func(*http.Request) error { e.cloud.Abate(); return nil },
		"advance": e.advance,
	} {
		mux.HandleFunc("POST /emulator/"+name, func(w http.ResponseWriter, r *http.Request) {
			if err := do(r); err != nil {
				http.Error(w, fmt.Sprintf("%s: %v", name, err), http.StatusBadRequest)
				return
			}
			_, _ = io.WriteString(w, "ok\n")
		})
	}
	return mux
}

// onGroup finds the group that a request names by name and, where that is not
// enough, zone and kind.
func (e *Emulator) onGroup(do func(cloud.Key, *http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		key, err := e.Find(r.FormValue("name"), r.FormValue("zone"), cloud.Kind(r.FormValue("kind")))
		if err != nil {
			return err
		}
		return do(key, r)
	}
}

// Find is the one group of that name; zone and kind may be "" where the name is
// enough.
func (e *Emulator) Find(name, zone string, kind cloud.Kind) (cloud.Key, error) {
	var found []cloud.Key
	for _, g := range e.cloud.All() {
		if g.Name == name && (zone == "" || g.Zone == zone) && (kind == "" || g.Kind == kind) {
			found = append(found, g.Key)
		}
	}
	switch len(found) {
	case 0:
		return cloud.Key{}, fmt.Errorf("no group is named %q", name)
	case 1:
		return found[0], nil
	}
	return cloud.Key{}, fmt.Errorf("%d groups are named %q: state zone and kind too", len(found), name)
}

func lasting(do func(time.Duration, *http.Request) error) func(*http.Request) error {
	return func(r *http.Request) error {
		lasts, err := durationOf(r, "for", 0)
		if err != nil {
			return err
		}
		return do(lasts, r)
	}
}

// misreadList has lists be wrong: fault states how, of which, zone which zone is
// missing, times how often and for how long.
func (e *Emulator) misreadList(r *http.Request) error {
	lasts, err := durationOf(r, "for", 0)
	if err != nil {
		return err
	}
	times := 0
	if text := r.FormValue("times"); text != "" {
		if times, err = strconv.Atoi(text); err != nil || times < 1 {
			return errors.New("times: want a whole number from 1")
		}
	}
	return e.cloud.MisreadList(cloud.ListFault(r.FormValue("fault")), r.FormValue("of"), r.FormValue("zone"), times, lasts)
}

// advance moves a virtual clock.
func (e *Emulator) advance(r *http.Request) error {
	by, err := durationOf(r, "by", time.Minute)
	if err != nil {
		return err
	}
	clock, ok := e.cloud.Clock().(*cloud.Virtual)
	if !ok {
		return errors.New("the clock runs by itself")
	}
	clock.Advance(by)
	return nil
}

func durationOf(r *http.Request, name string, without time.Duration) (time.Duration, error) {
	if r.FormValue(name) == "" {
		return without, nil
	}
	var d schema.Duration
	if err := d.UnmarshalText([]byte(r.FormValue(name))); err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s: %s is less than nothing", name, d)
	}
	return time.Duration(d), nil
}
