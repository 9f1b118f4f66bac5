// Package forgetest is a forge for tests: the REST APIs of GitHub and GitLab over one
// repository in memory, as far as fray calls them, in the shapes that their references
// document, with their pages, limits and errors. It has no events and no git. Start with New.
package forgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"

	"github.com/fray-ml/fray/forge"
)

// What the fake knows of.
const (
	Owner   = "acme"
	Name    = "train"
	Project = "42" // number of the same repository on GitLab
)

// Answer is what a request gets in place of what it asks for.
type Answer struct {
	Status int
	Header map[string]string
	Body   string
}

// Forge is one repository.
type Forge struct {
	mu       sync.Mutex
	token    string
	login    string // whose token it is
	unnamed  bool   // the token may not ask who it is, as that of a job on GitHub
	page     int    // the most items of a page
	next     int64
	pulls    map[int]forge.Pull
	comments map[int][]forge.Comment
	files    map[int][]File
	reviews  map[int][]Review
	statuses map[string][]forge.Status
	issues   []Issue
	calls    []string
	faults   []fault
	before   func(call string)
}

// File is a changed file with its diff.
type File struct{ Path, Status, Patch string }

// Review is a review of a pull request.
type Review struct{ By, State, Commit string }

// Issue is an issue, which may be closed.
type Issue struct {
	forge.Issue
	Labels []string
	Closed bool
}

type fault struct {
	call   string
	answer Answer
}

// New returns a repository that a token opens, of an account with a login.
func New(token, login string) *Forge {
	return &Forge{
		token: token, login: login, page: 100, next: 100,
		pulls: map[int]forge.Pull{}, comments: map[int][]forge.Comment{}, files: map[int][]File{}, reviews: map[int][]Review{},
		statuses: map[string][]forge.Status{},
	}
}

// locked runs do while nothing else reads or writes.
func (f *Forge) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// Unnamed has the token be one that may not ask who it is.
func (f *Forge) Unnamed() { f.locked(func() { f.unnamed = true }) }

// Page sets how many items a page has at most.
func (f *Forge) Page(n int) { f.locked(func() { f.page = n }) }

// SetPull adds or replaces a pull request.
func (f *Forge) SetPull(p forge.Pull) { f.locked(func() { f.pulls[p.Number] = p }) }

// SetFiles sets what a pull request changes.
func (f *Forge) SetFiles(pull int, files ...File) { f.locked(func() { f.files[pull] = files }) }

// AddReview adds a review of a pull request.
func (f *Forge) AddReview(pull int, r Review) {
	f.locked(func() { f.reviews[pull] = append(f.reviews[pull], r) })
}

// AddComment adds a comment of an author.
func (f *Forge) AddComment(pull int, author, body string) (id int64) {
	f.locked(func() {
		f.next++
		id = f.next
		f.comments[pull] = append(f.comments[pull], forge.Comment{ID: id, Author: author, Body: body})
	})
	return id
}

// Comments are those of a pull request.
func (f *Forge) Comments(pull int) (out []forge.Comment) {
	f.locked(func() { out = append(out, f.comments[pull]...) })
	return out
}

// Statuses are those that a commit got, in their order.
func (f *Forge) Statuses(commit string) (out []forge.Status) {
	f.locked(func() { out = append(out, f.statuses[commit]...) })
	return out
}

// Issues are all issues.
func (f *Forge) Issues() (out []Issue) {
	f.locked(func() { out = append(out, f.issues...) })
	return out
}

// Calls are the requests so far, as "GET /repos/acme/train/pulls/7".
func (f *Forge) Calls() (out []string) {
	f.locked(func() { out = append(out, f.calls...) })
	return out
}

// Fail has the next request of a call get an answer; of several for one call each counts once.
func (f *Forge) Fail(call string, a Answer) {
	f.locked(func() { f.faults = append(f.faults, fault{call, a}) })
}

// Before calls a function before each request is served. It may make requests of its own.
func (f *Forge) Before(do func(call string)) { f.locked(func() { f.before = do }) }

// ServeHTTP implements http.Handler.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method + " " + r.URL.Path
	var before func(string)
	f.locked(func() { f.calls, before = append(f.calls, call), f.before })
	if before != nil {
		before(call)
	}
	if a, ok := f.fault(call); ok {
		for name, value := range a.Header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(a.Status)
		_, _ = w.Write([]byte(a.Body))
		return
	}
	if given := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); given != f.token && r.Header.Get("Private-Token") != f.token {
		answer(w, http.StatusUnauthorized, map[string]any{"message": "Bad credentials"})
		return
	}
	mux := http.NewServeMux()
	f.github(mux)
	f.gitlab(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusNotFound, map[string]any{"message": "Not Found"})
	})
	mux.ServeHTTP(w, r)
}

func (f *Forge) fault(call string) (Answer, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, one := range f.faults {
		if one.call == call {
			f.faults = append(f.faults[:i], f.faults[i+1:]...)
			return one.answer, true
		}
	}
	return Answer{}, false
}

// RoundTrip implements http.RoundTripper: a client calls the forge in its own goroutine, without
// a network, so that tests may run on a clock of their own.
func (f *Forge) RoundTrip(r *http.Request) (*http.Response, error) {
	recorded := httptest.NewRecorder()
	f.ServeHTTP(recorded, r)
	out := recorded.Result()
	out.Request = r
	return out, nil
}

var _ http.RoundTripper = (*Forge)(nil)

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// body is the request as JSON.
func body(r *http.Request) map[string]any {
	var v map[string]any
	_ = json.NewDecoder(r.Body).Decode(&v)
	return v
}

func text(v map[string]any, name string) string {
	s, _ := v[name].(string)
	return s
}

// pageOf is the part of a list that a request asks for, and the number of the next page, 0 for none.
func pageOf[T any](f *Forge, r *http.Request, all []T) (items []T, next, last int) {
	size, page := f.page, 1
	if n, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil && n > 0 {
		size = min(size, n)
	}
	if n, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil && n > 0 {
		page = n
	}
	from, to := min((page-1)*size, len(all)), min(page*size, len(all))
	if to < len(all) {
		next = page + 1
	}
	return all[from:to], next, max(1, (len(all)+size-1)/size)
}

func number(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.PathValue(name))
	if err != nil {
		return -1
	}
	return n
}

// commentOf finds a comment by its id.
func (f *Forge) commentOf(id int64) (pull, at int) {
	for pull, all := range f.comments {
		for i := range all {
			if all[i].ID == id {
				return pull, i
			}
		}
	}
	return 0, -1
}

func link(r *http.Request, page int, rel string) string {
	u := *r.URL
	q := u.Query()
	q.Set("page", fmt.Sprint(page))
	u.RawQuery, u.Scheme, u.Host = q.Encode(), "http", r.Host
	return fmt.Sprintf("<%s>; rel=%q", u.String(), rel)
}
