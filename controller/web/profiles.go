package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fray-ml/fray/profile"
	"github.com/fray-ml/fray/state/store"
)

// Profiles is where the profiles of jobs, named by their ids, are read.
type Profiles interface {
	// List lists the profiles of a job, the newest first.
	List(ctx context.Context, job string) ([]store.ProfileName, error)
	// Read reads one of them; the error is store.ErrNotFound where it is not kept any more.
	Read(ctx context.Context, job string, name store.ProfileName) ([]byte, error)
}

// StoredProfiles reads profiles from the store.
type StoredProfiles struct{ Store store.Store }

var _ Profiles = StoredProfiles{}

// List is [Profiles.List].
func (s StoredProfiles) List(ctx context.Context, job string) ([]store.ProfileName, error) {
	return store.ListProfiles(ctx, s.Store, job)
}

// Read is [Profiles.Read].
func (s StoredProfiles) Read(ctx context.Context, job string, name store.ProfileName) ([]byte, error) {
	return store.ReadProfile(ctx, s.Store, job, name)
}

// ProfileRow is a profile of a task.
type ProfileRow struct {
	Name    string         `json:"name"`
	At      time.Time      `json:"at"`
	Attempt int            `json:"attempt"`
	Task    int            `json:"task"`
	Kind    profile.Kind   `json:"kind"`
	Format  profile.Format `json:"format"`
	Flame   bool           `json:"flame"` // a flame graph can be drawn of it
}

// ProfileList is the answer of /api/v1/jobs/{id}/profiles.
type ProfileList struct {
	Profiles []ProfileRow `json:"profiles"` // the newest first
}

// profileRoutes answers for the profiles of jobs.
type profileRoutes struct {
	kept Profiles // nil: there are none
	// find returns the id of a job by its id or address, false if it is not known.
	find func(name string) (id string, known bool)
}

func (p profileRoutes) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/v1/jobs/{id}/profiles", p.list)
	mux.HandleFunc("GET /api/v1/jobs/{id}/profiles/{name}", p.one)
	mux.HandleFunc("GET /api/v1/jobs/{id}/profiles/{name}/flame", p.flame)
}

// list lists the profiles of a job.
func (p profileRoutes) list(w http.ResponseWriter, r *http.Request) {
	job, known := p.find(r.PathValue("id"))
	if !known {
		fail(w, http.StatusNotFound, "there is no job \""+r.PathValue("id")+"\", or it was forgotten after its end")
		return
	}
	out := ProfileList{Profiles: []ProfileRow{}}
	if p.kept != nil {
		names, err := p.kept.List(r.Context(), job)
		if err != nil {
			fail(w, http.StatusBadGateway, err.Error())
			return
		}
		for _, n := range names {
			out.Profiles = append(out.Profiles, ProfileRow{
				Name: n.String(), At: n.At, Attempt: n.Attempt, Task: n.Task, Kind: n.Kind, Format: n.Format, Flame: n.Format != profile.PlainText,
			})
		}
	}
	answer(w, http.StatusOK, out)
}

// one answers with a profile as it was measured.
func (p profileRoutes) one(w http.ResponseWriter, r *http.Request) {
	name, data, ok := p.read(w, r)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", name.Format.ContentType())
	w.Header().Set("Content-Security-Policy", inertContent)
	if name.Format != profile.PlainText {
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name.String()))
	}
	_, _ = w.Write(data)
}

// inertContent lets a browser show what came from a host, and do nothing else with it.
const inertContent = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// flame answers with the flame graph of a profile.
func (p profileRoutes) flame(w http.ResponseWriter, r *http.Request) {
	name, data, ok := p.read(w, r)
	if !ok {
		return
	}
	graph, err := profile.Read(name.Format, data)
	var drawn bytes.Buffer
	if err == nil {
		title := fmt.Sprintf("%s task %d, attempt %d: %s, %s", r.PathValue("id"), name.Task, name.Attempt, name.Kind, name.At.Format(time.RFC3339))
		err = profile.Flame(&drawn, title, graph)
	}
	if err != nil {
		fail(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Content-Security-Policy", inertContent)
	_, _ = w.Write(drawn.Bytes())
}

// read reads the profile that a request names; otherwise it has answered the request.
func (p profileRoutes) read(w http.ResponseWriter, r *http.Request) (name store.ProfileName, data []byte, ok bool) {
	job, known := p.find(r.PathValue("id"))
	name, valid := store.ParseProfileName(r.PathValue("name"))
	if !known || !valid || p.kept == nil {
		fail(w, http.StatusNotFound, "there is no such profile, or its job was forgotten after its end")
		return name, nil, false
	}
	data, err := p.kept.Read(r.Context(), job, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		fail(w, http.StatusNotFound, "this profile is not kept any more: the last ones of each job are")
	case err != nil:
		fail(w, http.StatusBadGateway, err.Error())
	}
	return name, data, err == nil
}
