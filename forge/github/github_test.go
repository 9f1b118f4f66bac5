package github_test

import (
	"context"
	"errors"
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
	"github.com/fray-ml/fray/forge/github"
)

const (
	token = "ghs_0123456789secret"
	bot   = "github-actions[bot]"
	repo  = "/repos/acme/train"
)

// connected is a client of a forge, without a network between them.
func connected(t *testing.T, f http.RoundTripper) *github.Client {
	t.Helper()
	c, err := github.New(github.Config{Repository: "acme/train", Token: token, Version: "1", Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommentsOfSeveralPages(t *testing.T) {
	f := forgetest.New(token, bot)
	f.SetPull(forge.Pull{Number: 7, Head: "abc"})
	f.Page(2)
	c := connected(t, f)
	for i := range 5 {
		if err := c.CreateComment(t.Context(), 7, fmt.Sprint("comment ", i)); err != nil {
			t.Fatal(err)
		}
	}
	found, err := c.Comments(t.Context(), 7)
	if err != nil || len(found) != 5 || found[4].Body != "comment 4" || found[4].Author != bot {
		t.Fatalf("got %v, %v", found, err)
	}
	if err := c.EditComment(t.Context(), 7, found[4].ID, "edited"); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteComment(t.Context(), 7, found[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteComment(t.Context(), 7, found[0].ID); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
	found, _ = c.Comments(t.Context(), 7)
	if len(found) != 4 || found[3].Body != "edited" {
		t.Errorf("got %v", found)
	}
}

func TestPulls(t *testing.T) {
	f := forgetest.New(token, bot)
	open := forge.Pull{Number: 7, Head: "abc"}
	fork := forge.Pull{Number: 8, Head: "def", Fork: true}
	merged := forge.Pull{Number: 9, Head: "ghi", Merged: true, Merge: "jkl"}
	for _, p := range []forge.Pull{open, fork, merged} {
		f.SetPull(p)
	}
	c := connected(t, f)
	for _, want := range []forge.Pull{open, fork, merged} {
		if got, err := c.Pull(t.Context(), want.Number); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	if got, err := c.PullsOf(t.Context(), "jkl"); err != nil || !slices.Equal(got, []forge.Pull{merged}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := c.Pull(t.Context(), 10); !forge.IsCause(err, forge.NotFound) {
		t.Errorf("got %v", err)
	}
}

func TestFiles(t *testing.T) {
	f := forgetest.New(token, bot)
	f.SetFiles(7, forgetest.File{Path: "fray.hcl", Status: "modified", Patch: "@@ -1,3 +1,4 @@ job\n a\n+b\n@@ -20 +22 @@\n-x\n+y"}, forgetest.File{Path: "gone.hcl", Status: "removed"}, forgetest.File{Path: "large.hcl", Status: "added"})
	got, err := connected(t, f).Files(t.Context(), 7)
	want := []forge.File{{Path: "fray.hcl", Lines: []forge.Lines{{From: 1, To: 4}, {From: 22, To: 22}}}, {Path: "large.hcl"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

func TestApprovals(t *testing.T) {
	f := forgetest.New(token, bot)
	for _, r := range []forgetest.Review{
		{By: "alice", State: "APPROVED", Commit: "abc"}, {By: "bob", State: "APPROVED", Commit: "abc"}, {By: "bob", State: "CHANGES_REQUESTED", Commit: "abc"},
		{By: "carol", State: "CHANGES_REQUESTED", Commit: "abc"}, {By: "carol", State: "APPROVED", Commit: "def"}, {By: "carol", State: "COMMENTED", Commit: "def"},
	} {
		f.AddReview(7, r)
	}
	got, err := connected(t, f).Approvals(t.Context(), 7)
	if want := []forge.Approval{{By: "alice", Commit: "abc"}, {By: "carol", Commit: "def"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestStatus(t *testing.T) {
	f := forgetest.New(token, bot)
	c := connected(t, f)
	s := forge.Status{Context: "fray/plan", State: forge.StateFailure, Description: strings.Repeat("long ", 60) + "\nsecond line", URL: "https://ci.example/1"}
	if err := c.SetStatus(t.Context(), "abc", s); err != nil {
		t.Fatal(err)
	}
	got := f.Statuses("abc")
	if len(got) != 1 || got[0].Context != s.Context || got[0].State != s.State || got[0].URL != s.URL || !strings.HasSuffix(got[0].Description, "…") {
		t.Errorf("got %+v", got)
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

func TestAuthor(t *testing.T) {
	f := forgetest.New(token, "octocat")
	if got, err := connected(t, f).Author(t.Context()); err != nil || got != "octocat" {
		t.Errorf("got %q, %v", got, err)
	}
	f.Unnamed() // the token of a job may not ask
	if got, err := connected(t, f).Author(t.Context()); err != nil || got != bot {
		t.Errorf("got %q, %v", got, err)
	}
}

// Reads wait as long as GitHub asks for, of every kind of limit, and go on after its failures.
func TestReadsOutlastLimits(t *testing.T) {
	list := "GET " + repo + "/issues/7/comments"
	reset := func(in time.Duration) string { return fmt.Sprint(time.Now().Add(in).Unix()) }
	for name, c := range map[string]struct {
		answer func() forgetest.Answer
		waits  time.Duration
	}{
		"secondary limit": {func() forgetest.Answer {
			return forgetest.Answer{Status: 403, Header: map[string]string{"Retry-After": "42"}, Body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}
		}, 42 * time.Second},
		"limit with 429": {func() forgetest.Answer {
			return forgetest.Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"message":"Too many requests"}`}
		}, 7 * time.Second},
		"primary limit": {func() forgetest.Answer {
			return forgetest.Answer{Status: 403, Header: map[string]string{"X-Ratelimit-Limit": "1000", "X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": reset(30 * time.Second)}, Body: `{"message":"API rate limit exceeded for installation ID 1."}`}
		}, 30 * time.Second},
		"failure": {func() forgetest.Answer { return forgetest.Answer{Status: 502, Body: "<html>Bad Gateway</html>"} }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := forgetest.New(token, bot)
				f.SetPull(forge.Pull{Number: 7})
				f.AddComment(7, bot, "text")
				f.Fail(list, c.answer())
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

// A limit that lasts too long, and a failure that stays, become errors with their cause.
func TestLastingFailures(t *testing.T) {
	list := "GET " + repo + "/issues/7/comments"
	for name, c := range map[string]struct {
		answer forgetest.Answer
		times  int
		want   forge.Cause
		text   string
	}{
		"hours":      {forgetest.Answer{Status: 429, Header: map[string]string{"Retry-After": "3600"}, Body: `{"message":"slow down"}`}, 1, forge.Limited, "run the job again later"},
		"failing":    {forgetest.Answer{Status: 503}, 9, forge.Unavailable, "HTTP 503"},
		"read only":  {forgetest.Answer{Status: 403, Body: `{"message":"Resource not accessible by integration"}`}, 1, forge.Denied, "permission"},
		"bad token":  {forgetest.Answer{Status: 401, Body: `{"message":"Bad credentials"}`}, 1, forge.Denied, "Bad credentials"},
		"not there":  {forgetest.Answer{Status: 404, Body: `{"message":"Not Found"}`}, 1, forge.NotFound, "check the repository"},
		"unreadable": {forgetest.Answer{Status: 422, Body: `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"x","code":"invalid"}]}`}, 1, forge.Invalid, "Issue x invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := forgetest.New(token, bot)
				for range c.times {
					f.Fail(list, c.answer)
				}
				_, err := connected(t, f).Comments(t.Context(), 7)
				if !forge.IsCause(err, c.want) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want cause %q and %q", err, c.want, c.text)
				}
			})
		})
	}
}

// A comment whose creation failed is not created again by the client: it may be there.
func TestWritesAreNotRepeated(t *testing.T) {
	f := forgetest.New(token, bot)
	f.SetPull(forge.Pull{Number: 7})
	create := "POST " + repo + "/issues/7/comments"
	f.Fail(create, forgetest.Answer{Status: 502})
	if err := connected(t, f).CreateComment(t.Context(), 7, "text"); !forge.IsCause(err, forge.Unavailable) {
		t.Fatalf("got %v", err)
	}
	if calls := f.Calls(); !slices.Equal(calls, []string{create}) {
		t.Errorf("called %v", calls)
	}
}

// The token is in no error, and goes to no other host, also where the API redirects to one.
func TestTokenStaysHidden(t *testing.T) {
	stolen := make(chan string, 16)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	defer thief.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+"/?token="+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), http.StatusFound)
	}))
	defer api.Close()
	c, err := github.New(github.Config{API: api.URL, Repository: "acme/train", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Pull(t.Context(), 7)
	close(stolen)
	for header := range stolen {
		if header != "" {
			t.Errorf("another host got %q", header)
		}
	}
	if err != nil && strings.Contains(err.Error(), token) {
		t.Errorf("the error has the token: %v", err)
	}

	broken := connected(t, failing{})
	for name, call := range map[string]func() error{
		"read": func() error {
			ctx, end := context.WithCancel(t.Context())
			end()
			_, err := broken.Pull(ctx, 7)
			return err
		},
		"write": func() error { return broken.CreateComment(t.Context(), 7, "text") },
		"status": func() error {
			ctx, end := context.WithCancel(t.Context())
			end()
			return broken.SetStatus(ctx, "abc", forge.Status{})
		},
	} {
		if err := call(); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// failing is a network that reports the whole request.
type failing struct{}

func (failing) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New("cannot reach " + r.URL.Host)
}

func TestConfigMistakes(t *testing.T) {
	for name, c := range map[string]github.Config{
		"no token":      {Repository: "acme/train"},
		"no owner":      {Repository: "train", Token: token},
		"no repository": {Token: token},
		"no URL":        {Repository: "acme/train", Token: token, API: "api.github.com"},
	} {
		if _, err := github.New(c); err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
