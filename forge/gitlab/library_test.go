package gitlab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	library "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/gitlab"
)

// recorder keeps requests, and answers each as GitLab would in short.
type recorder struct {
	sent   []string
	answer string
}

func (r *recorder) RoundTrip(q *http.Request) (*http.Response, error) {
	body := map[string]any{}
	if q.Body != nil {
		data, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &body); err != nil {
			return nil, fmt.Errorf("body %s: %w", data, err)
		}
	}
	r.sent = append(r.sent, fmt.Sprintf("%s %s?%s %v %s %s", q.Method, q.URL.EscapedPath(), q.URL.Query().Encode(), body, q.Header.Get("Private-Token"), q.Header.Get("Accept")))
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(r.answer)), Request: q}, nil
}

// TestCallsAreThoseOfTheLibrary: what the client sends is what GitLab's own library sends for the
// same calls, which takes too long to start for a part of fray.
func TestCallsAreThoseOfTheLibrary(t *testing.T) {
	const name, number, commit = "acme/train.v2", 7, "feature/a.b"
	ours, theirs := &recorder{}, &recorder{}
	c, err := gitlab.New(gitlab.Config{Project: name, Token: token, Version: "1", Transport: ours, API: "https://git.example/api/v4"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := library.NewClient(token, library.WithBaseURL("https://git.example"), library.WithHTTPClient(&http.Client{Transport: theirs}))
	if err != nil {
		t.Fatal(err)
	}
	page := library.ListOptions{Page: 1, PerPage: 100}
	issue := forge.Issue{Number: 3, Title: "drift", Body: "text"}
	status := forge.Status{Context: "fray/plan", State: forge.StateFailure, Description: "text", URL: "https://ci.example"}
	id := int64(11)
	for _, call := range []struct {
		answer       string
		ours, theirs func() error
	}{
		{`{}`, func() error { _, err := c.Author(t.Context()); return err }, func() error { _, _, err := l.Users.CurrentUser(); return err }},
		{`{}`, func() error { return c.SetStatus(t.Context(), commit, status) }, func() error {
			o := &library.SetCommitStatusOptions{State: library.Failed, Name: &status.Context, Description: &status.Description, TargetURL: &status.URL}
			_, _, err := l.Commits.SetCommitStatus(name, commit, o)
			return err
		}},
		{`{}`, func() error { _, err := c.Pull(t.Context(), number); return err }, func() error { _, _, err := l.MergeRequests.GetMergeRequest(name, number, nil); return err }},
		{`[]`, func() error { _, err := c.PullsOf(t.Context(), commit); return err }, func() error { _, _, err := l.Commits.ListMergeRequestsByCommit(name, commit); return err }},
		{`[]`, func() error { _, err := c.Files(t.Context(), number); return err }, func() error {
			_, _, err := l.MergeRequests.ListMergeRequestDiffs(name, number, &library.ListMergeRequestDiffsOptions{ListOptions: page})
			return err
		}},
		{`{}`, func() error { _, err := c.Approvals(t.Context(), number); return err }, func() error { _, _, err := l.MergeRequestApprovals.GetConfiguration(name, number); return err }},
		{`[]`, func() error { _, err := c.Comments(t.Context(), number); return err }, func() error {
			o := &library.ListMergeRequestNotesOptions{ListOptions: page, OrderBy: new("created_at"), Sort: new("asc")}
			_, _, err := l.Notes.ListMergeRequestNotes(name, number, o)
			return err
		}},
		{`{}`, func() error { return c.CreateComment(t.Context(), number, "text") }, func() error {
			_, _, err := l.Notes.CreateMergeRequestNote(name, number, &library.CreateMergeRequestNoteOptions{Body: new("text")})
			return err
		}},
		{`{}`, func() error { return c.EditComment(t.Context(), number, id, "text") }, func() error {
			_, _, err := l.Notes.UpdateMergeRequestNote(name, number, id, &library.UpdateMergeRequestNoteOptions{Body: new("text")})
			return err
		}},
		{`{}`, func() error { return c.DeleteComment(t.Context(), number, id) }, func() error { _, err := l.Notes.DeleteMergeRequestNote(name, number, id); return err }},
		{`[]`, func() error { _, err := c.Issues(t.Context(), "fray drift"); return err }, func() error {
			o := &library.ListProjectIssuesOptions{ListOptions: page, State: new("opened"), Labels: &library.LabelOptions{"fray drift"}, OrderBy: new("created_at"), Sort: new("asc")}
			_, _, err := l.Issues.ListProjectIssues(name, o)
			return err
		}},
		{`{}`, func() error { _, err := c.CreateIssue(t.Context(), "fray-drift", issue); return err }, func() error {
			_, _, err := l.Issues.CreateIssue(name, &library.CreateIssueOptions{Title: &issue.Title, Description: &issue.Body, Labels: &library.LabelOptions{"fray-drift"}})
			return err
		}},
		{`{}`, func() error { return c.EditIssue(t.Context(), issue) }, func() error {
			_, _, err := l.Issues.UpdateIssue(name, 3, &library.UpdateIssueOptions{Title: &issue.Title, Description: &issue.Body})
			return err
		}},
		{`{}`, func() error { return c.CloseIssue(t.Context(), issue) }, func() error {
			_, _, err := l.Issues.UpdateIssue(name, 3, &library.UpdateIssueOptions{Description: &issue.Body, StateEvent: new("close")})
			return err
		}},
	} {
		ours.answer, theirs.answer = call.answer, call.answer
		if err := call.ours(); err != nil {
			t.Error(err)
		}
		if err := call.theirs(); err != nil {
			t.Error(err)
		}
	}
	// The library asks first how many calls it may make.
	for i, sent := range theirs.sent {
		if strings.Contains(sent, "/api/v4/? ") {
			theirs.sent = append(theirs.sent[:i:i], theirs.sent[i+1:]...)
			break
		}
	}
	if !reflect.DeepEqual(ours.sent, theirs.sent) {
		t.Errorf("sent\n%s\nthe library sends\n%s", strings.Join(ours.sent, "\n"), strings.Join(theirs.sent, "\n"))
	}
}

// TestMessages: what GitLab answers to a call that it does not accept is shown in one line.
func TestMessages(t *testing.T) {
	for body, want := range map[string]string{
		`{"message":"404 Not found"}`:                   "{message: 404 Not found}",
		`{"message":{"note":["is too long","is odd"]}}`: "{message: {note: [is too long, is odd]}}",
		`{"error":"invalid_token","error_code":7}`:      "{error: invalid_token}, {error_code: 7}",
		"Retry later\n": "Retry later",
		"":              "Bad Request",
	} {
		answered := roundTrip(func(q *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(body))), Request: q}, nil
		})
		err := connected(t, answered).CreateComment(t.Context(), 7, "text")
		if want := "GitLab: comment on merge request 7: " + want + " (HTTP 400)"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }
