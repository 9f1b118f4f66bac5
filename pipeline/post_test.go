package pipeline

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/forgetest"
	"github.com/fray-ml/fray/forge/github"
	"github.com/fray-ml/fray/forge/gitlab"
	"github.com/fray-ml/fray/review"
)

const (
	token = "0123456789secret"
	bot   = "fray-bot"
)

// forges are clients of both kinds, of one repository in memory.
func forges() map[forge.Kind]func(*testing.T, http.RoundTripper) Client {
	return map[forge.Kind]func(*testing.T, http.RoundTripper) Client{
		forge.GitHub: func(t *testing.T, f http.RoundTripper) Client {
			c, err := github.New(github.Config{Repository: "acme/train", Token: token, Transport: f})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		forge.GitLab: func(t *testing.T, f http.RoundTripper) Client {
			c, err := gitlab.New(gitlab.Config{Project: "42", Token: token, Transport: f})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	}
}

// onBoth runs a test with the client of each forge.
func onBoth(t *testing.T, test func(t *testing.T, f *forgetest.Forge, connect func() Client)) {
	for kind, connect := range forges() {
		t.Run(string(kind), func(t *testing.T) {
			f := forgetest.New(token, bot)
			f.SetPull(forge.Pull{Number: 7, Head: "new"})
			test(t, f, func() Client { return connect(t, f) })
		})
	}
}

// comment is what a run has to say about a target.
func comment(client Client, commit string, run int64, target review.Target) *post {
	m := review.Marker{Kind: review.KindPlan, Target: target, Commit: commit, Run: run}
	return &post{forge: client, pull: 7, wanted: review.Wanted{Marker: m, Body: m.Encode() + fmt.Sprintf("\nplan of %s by run %d", commit, run), Adds: true}}
}

func mustPost(t *testing.T, p *post) review.Choice {
	t.Helper()
	c, err := p.write(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantComments holds that the comments end with texts.
func wantComments(t *testing.T, f *forgetest.Forge, ends ...string) {
	t.Helper()
	got := f.Comments(7)
	if len(got) != len(ends) {
		t.Fatalf("got %d comments, want %d: %+v", len(got), len(ends), got)
	}
	for i, end := range ends {
		if !strings.HasSuffix(got[i].Body, end) {
			t.Errorf("comment %d is %q, want it to end with %q", i, got[i].Body, end)
		}
	}
}

var (
	train = review.Target{Dir: "stacks/train", Workspace: "default"}
	prod  = review.Target{Dir: "stacks/train", Workspace: "prod"}
)

// Each directory and workspace has one comment (check 13), which later runs edit.
func TestOneCommentForEachTarget(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		f.AddComment(7, "alice", "looks good")
		c := connect()
		for run := range int64(3) {
			mustPost(t, comment(c, "new", run+1, train))
			mustPost(t, comment(c, "new", run+1, prod))
		}
		wantComments(t, f, "looks good", "by run 3", "by run 3")
		if choice := mustPost(t, comment(c, "new", 3, prod)); choice.Because != review.BecauseSame {
			t.Errorf("got %+v", choice)
		}
	})
}

// A comment of another author is left alone, also one that has a marker.
func TestCommentsOfOthersStay(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		spoof := review.Marker{Kind: review.KindPlan, Target: train, Commit: "new", Run: 999}.Encode() + "\nspoofed"
		f.AddComment(7, "mallory", spoof)
		f.AddComment(7, bot, "quoted:\n"+spoof)
		mustPost(t, comment(connect(), "new", 1, train))
		wantComments(t, f, "spoofed", "spoofed", "by run 1")
	})
}

// A run on a commit that is not the head any more writes nothing, whenever it ends (check 14).
func TestOlderCommitWritesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		c := connect()
		mustPost(t, comment(c, "new", 2, train))
		if choice := mustPost(t, comment(c, "old", 1, train)); choice.Because != review.BecauseSuperseded {
			t.Errorf("got %+v", choice)
		}
		// Also where it was run again later, and so has the higher number.
		mustPost(t, comment(c, "old", 3, train))
		wantComments(t, f, "plan of new by run 2")
		// The branch goes back to the older commit: that is the newer state of the pull request.
		f.SetPull(forge.Pull{Number: 7, Head: "old"})
		mustPost(t, comment(c, "old", 4, train))
		wantComments(t, f, "plan of old by run 4")
	})
}

// Of one commit the later run counts, whichever ends last.
func TestOlderRunWritesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		c := connect()
		mustPost(t, comment(c, "new", 2, train))
		if choice := mustPost(t, comment(c, "new", 1, train)); choice.Because != review.BecauseNewerRun {
			t.Errorf("got %+v", choice)
		}
		wantComments(t, f, "plan of new by run 2")
	})
}

// A commit is pushed, and its run comments, while the run of the older commit has read the comments and
// is about to write: that run reads the head after the comments, and so writes nothing (check 14).
func TestCommitIsPushedMeanwhile(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		f.SetPull(forge.Pull{Number: 7, Head: "old"})
		mustPost(t, comment(connect(), "old", 1, train))
		var began atomic.Bool // a hook's own requests call it again
		f.Before(func(call string) {
			if !strings.HasSuffix(call, "/pulls/7") && !strings.HasSuffix(call, "/merge_requests/7") {
				return
			}
			if !began.Swap(true) {
				f.SetPull(forge.Pull{Number: 7, Head: "new"})
				mustPost(t, comment(connect(), "new", 3, train))
			}
		})
		if choice := mustPost(t, comment(connect(), "old", 2, train)); choice.Because != review.BecauseSuperseded {
			t.Errorf("got %+v", choice)
		}
		wantComments(t, f, "plan of new by run 3")
	})
}

// Two runs that both find no comment end with one comment, of the later run, in every order of
// their writes.
func TestTwoRunsAtOnce(t *testing.T) {
	for _, inner := range []int64{1, 2} { // the run that writes while the other is about to
		onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
			var began atomic.Bool // a hook's own requests call it again
			f.Before(func(call string) {
				if strings.HasPrefix(call, "POST ") {
					if !began.Swap(true) {
						mustPost(t, comment(connect(), "new", inner, train))
					}
				}
			})
			mustPost(t, comment(connect(), "new", 3-inner, train))
			f.Before(nil)
			wantComments(t, f, "by run 2")
		})
	}
}

// An older run overwrites the comment of a newer one in the moment between its last look and its
// write: the newer one finds that when it looks at what it has written.
func TestNewerRunLooksAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		mustPost(t, comment(connect(), "new", 1, train))
		id := f.Comments(7)[0].ID
		older := comment(nil, "new", 2, train).wanted.Body
		lists := 0
		f.Before(func(call string) {
			if strings.HasPrefix(call, "GET ") && (strings.HasSuffix(call, "/comments") || strings.HasSuffix(call, "/notes")) {
				if lists++; lists == 2 { // the look after the write
					if err := connect().EditComment(t.Context(), 7, id, older); err != nil {
						t.Error(err)
					}
				}
			}
		})
		mustPost(t, comment(connect(), "new", 3, train))
		wantComments(t, f, "by run 3")
	})
}

// Many runs of one commit at once: whatever comes between, there is one comment in the end, of the
// latest run.
func TestManyRunsAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		mustPost(t, comment(connect(), "new", 1, train))
		var work sync.WaitGroup
		for run := int64(2); run <= 6; run++ {
			work.Go(func() { mustPost(t, comment(connect(), "new", run, train)) })
		}
		work.Wait()
		mustPost(t, comment(connect(), "new", 7, train))
		wantComments(t, f, "by run 7")
	})
}

// A write that met a limit is decided anew: a newer commit may have come while it waited.
func TestWriteIsDecidedAnewAfterALimit(t *testing.T) {
	for kind, connect := range forges() {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := forgetest.New(token, bot)
				f.SetPull(forge.Pull{Number: 7, Head: "old"})
				create := map[forge.Kind]string{forge.GitHub: "POST /repos/acme/train/issues/7/comments", forge.GitLab: "POST /api/v4/projects/42/merge_requests/7/notes"}[kind]
				f.Fail(create, forgetest.Answer{Status: 429, Header: map[string]string{"Retry-After": "30"}, Body: `{"message":"slow down"}`})
				pushed := time.AfterFunc(10*time.Second, func() { f.SetPull(forge.Pull{Number: 7, Head: "new"}) })
				defer pushed.Stop()
				if choice := mustPost(t, comment(connect(t, f), "old", 1, train)); choice.Because != review.BecauseSuperseded {
					t.Errorf("got %+v", choice)
				}
				wantComments(t, f)
			})
		})
	}
}

// A creation whose answer is lost may have happened: the comment is found and not made again.
func TestLostAnswerMakesNoSecondComment(t *testing.T) {
	for kind, connect := range forges() {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := forgetest.New(token, bot)
				f.SetPull(forge.Pull{Number: 7, Head: "new"})
				mustPost(t, comment(connect(t, &lossy{to: f}), "new", 1, train))
				wantComments(t, f, "by run 1")
			})
		})
	}
}

// lossy loses the answer of the first creation.
type lossy struct {
	to   http.RoundTripper
	once sync.Once
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.to.RoundTrip(r)
	if r.Method == http.MethodPost {
		l.once.Do(func() { answer, err = nil, fmt.Errorf("connection reset by peer") })
	}
	return answer, err
}

// The comment is removed between the look and the write: it is made again.
func TestCommentIsRemovedMeanwhile(t *testing.T) {
	onBoth(t, func(t *testing.T, f *forgetest.Forge, connect func() Client) {
		mustPost(t, comment(connect(), "new", 1, train))
		id := f.Comments(7)[0].ID
		var once sync.Once
		f.Before(func(call string) {
			if strings.HasPrefix(call, "PATCH ") || strings.HasPrefix(call, "PUT ") {
				once.Do(func() {
					if err := connect().DeleteComment(t.Context(), 7, id); err != nil {
						t.Error(err)
					}
				})
			}
		})
		mustPost(t, comment(connect(), "new", 2, train))
		wantComments(t, f, "by run 2")
	})
}
