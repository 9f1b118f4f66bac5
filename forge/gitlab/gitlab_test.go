package gitlab_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/forgetest"
	"github.com/fray-ml/fray/forge/gitlab"
)

const (
	token   = "glpat-0123456789secret"
	bot     = "project_42_bot"
	project = "/api/v4/projects/42"
)

// connected is a client of a forge, without a network between them.
func connected(t *testing.T, f http.RoundTripper) *gitlab.Client {
	t.Helper()
	c, err := gitlab.New(gitlab.Config{Project: "42", Token: token, Version: "1", Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Notes of several pages are read; those that GitLab writes itself are none.
func TestNotesOfSeveralPages(t *testing.T) {
	f := forgetest.New(token, bot)
	f.SetPull(forge.Pull{Number: 7, Head: "abc"})
	f.Page(2)
	c := connected(t, f)
	for i := range 5 {
		if err := c.CreateComment(t.Context(), 7, fmt.Sprint("note ", i)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := c.Comments(t.Context(), 7)
	if err != nil || len(found) != 5 || found[4].Body != "note 4" || found[4].Author != bot {
		t.Fatalf("got %v, %v", found, err)
	}
	if err := c.EditComment(t.Context(), 7, found[4].ID, "edited"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.DeleteComment(t.Context(), 7, found[0].ID); err != nil {
			t.Fatal(err)
		}
	}
	found, _ = c.Comments(t.Context(), 7)
	if len(found) != 4 || found[3].Body != "edited" {
		t.Errorf("got %v", found)
	}
}

func TestMergeRequests(t *testing.T) {
	f := forgetest.New(token, bot)
	open := forge.Pull{Number: 7, Head: "abc"}
	fork := forge.Pull{Number: 8, Head: "def", Fork: true}
	merged := forge.Pull{Number: 9, Head: "ghi", Merged: true, Merge: "jkl"}
	for _, p := range []forge.Pull{open, fork, merged} {
		f.SetPull(p)
	}
	f.SetFiles(7, forgetest.File{Path: "fray.hcl", Status: "modified", Patch: "@@ -1,3 +1,4 @@\n a\n"}, forgetest.File{Path: "gone.hcl", Status: "removed"})
	f.AddReview(7, forgetest.Review{By: "alice", State: "APPROVED"})
	c := connected(t, f)
	for _, want := range []forge.Pull{open, fork, merged} {
		if got, err := c.Pull(t.Context(), want.Number); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if got, err := c.PullsOf(t.Context(), "jkl"); err != nil || !slices.Equal(got, []forge.Pull{merged}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := c.Files(t.Context(), 7); err != nil || !reflect.DeepEqual(got, []forge.File{{Path: "fray.hcl", Lines: []forge.Lines{{From: 1, To: 4}}}}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := c.Approvals(t.Context(), 7); err != nil || !slices.Equal(got, []forge.Approval{{By: "alice"}}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := c.Author(t.Context()); err != nil || got != bot {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestStatus(t *testing.T) {
	f := forgetest.New(token, bot)
	c := connected(t, f)
	for state, want := range map[forge.State]forge.State{forge.StatePending: "running", forge.StateSuccess: "success", forge.StateFailure: "failed", forge.StateError: "failed"} {
		commit := "commit-" + string(state)
		if err := c.SetStatus(t.Context(), commit, forge.Status{Context: "fray/plan", State: state, Description: "text", URL: "https://ci.example/1"}); err != nil {
			t.Fatal(err)
		}
		if got := f.Statuses(commit); len(got) != 1 || got[0].State != want || got[0].Context != "fray/plan" {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}

func TestIssues(t *testing.T) {
	f := forgetest.New(token, bot)
	c := connected(t, f)
	made, err := c.CreateIssue(t.Context(), "fray-drift", forge.Issue{Title: "drift", Body: "one"})
	if err != nil || made.Number == 0 {
		t.Fatalf("got %+v, %v", made, err)
	}
	made.Body = "two"
	if err := c.EditIssue(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Issues(t.Context(), "fray-drift"); err != nil || len(got) != 1 || got[0] != made {
		t.Errorf("got %+v, %v, want %+v", got, err, made)
	}
	if err := c.CloseIssue(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Issues(t.Context(), "fray-drift"); err != nil || len(got) != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestReadsOutlastLimits(t *testing.T) {
	list := "GET " + project + "/merge_requests/7/notes"
	for name, c := range map[string]struct {
		answer forgetest.Answer
		waits  time.Duration
	}{
		"limit":   {forgetest.Answer{Status: 429, Header: map[string]string{"Retry-After": "42"}, Body: "Retry later\n"}, 42 * time.Second},
		"failure": {forgetest.Answer{Status: 502, Body: "<html>Bad Gateway</html>"}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := forgetest.New(token, bot)
				f.SetPull(forge.Pull{Number: 7})
				f.AddComment(7, bot, "text")
				f.Fail(list, c.answer)
				began := time.Now()
				found, err := connected(t, f).Comments(t.Context(), 7)
				if err != nil || len(found) != 1 {
					t.Fatalf("got %v, %v", found, err)
				}
				if took := time.Since(began); took < c.waits || took > c.waits+2*time.Second {
					t.Errorf("waited %v, want %v", took, c.waits)
				}
			})
		})
	}
}

func TestLastingFailures(t *testing.T) {
	list := "GET " + project + "/merge_requests/7/notes"
	for name, c := range map[string]struct {
		answer forgetest.Answer
		want   forge.Cause
	}{
		"hours":     {forgetest.Answer{Status: 429, Header: map[string]string{"Retry-After": "3600"}}, forge.Limited},
		"read only": {forgetest.Answer{Status: 403, Body: `{"message":"403 Forbidden"}`}, forge.Denied},
		"not there": {forgetest.Answer{Status: 404, Body: `{"message":"404 Not found"}`}, forge.NotFound},
		"invalid":   {forgetest.Answer{Status: 400, Body: `{"message":{"note":["is too long"]}}`}, forge.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := forgetest.New(token, bot)
				f.Fail(list, c.answer)
				if _, err := connected(t, f).Comments(t.Context(), 7); !forge.IsCause(err, c.want) || strings.Contains(err.Error(), token) {
					t.Errorf("got %v, want cause %q", err, c.want)
				}
			})
		})
	}
}

func TestWritesAreNotRepeated(t *testing.T) {
	f := forgetest.New(token, bot)
	f.SetPull(forge.Pull{Number: 7})
	create := "POST " + project + "/merge_requests/7/notes"
	f.Fail(create, forgetest.Answer{Status: 502})
	if err := connected(t, f).CreateComment(t.Context(), 7, "text"); !forge.IsCause(err, forge.Unavailable) {
		t.Fatalf("got %v", err)
	}
	if calls := f.Calls(); !slices.Equal(calls, []string{create}) {
		t.Errorf("called %v", calls)
	}
}

// The token goes to no other host, also where the API redirects to one: no header of it, and no call.
func TestTokenStaysHidden(t *testing.T) {
	stolen := make(chan http.Header, 16)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header }))
	defer thief.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief.URL, http.StatusFound) }))
	defer api.Close()
	c, err := gitlab.New(gitlab.Config{API: api.URL, Project: "42", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithTimeout(t.Context(), time.Nanosecond)
	end()
	for _, ctx := range []context.Context{t.Context(), ctx} {
		if err := c.CreateComment(ctx, 7, "text"); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("got %v", err)
		}
	}
	err = c.EditComment(t.Context(), 7, 1, "text")
	if err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("got %v", err)
	}
	close(stolen)
	for header := range stolen {
		t.Errorf("another host was called with %v", header)
	}
}

func TestConfigMistakes(t *testing.T) {
	for name, c := range map[string]gitlab.Config{
		"no token":   {Project: "42"},
		"no project": {Token: token},
		"no URL":     {Project: "42", Token: token, API: "gitlab.com"},
	} {
		if _, err := gitlab.New(c); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
