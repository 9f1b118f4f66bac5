package watch

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller/loop"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/forgetest"
	"github.com/fray-ml/fray/gitops"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// A watch of a real repository reports to a forge what becomes of its commits, and records who
// merged what.
func TestCommitsAreReportedToTheForge(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("FRAY_FORGE_TOKEN", "s3cretpath")
	repo := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=merger", "-c", "user.email=m@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	commit := func(subject, text string) string {
		settings := "fray {\n  state \"local\" {\n    path = \"" + t.TempDir() + "\"\n  }\n}\n"
		if err := os.WriteFile(filepath.Join(repo, "fray.hcl"), []byte(settings+text), 0o600); err != nil {
			t.Fatal(err)
		}
		git("add", "-A")
		git("commit", "--quiet", "--author=Ada <a@example.com>", "-m", subject)
		return git("rev-parse", "HEAD")
	}
	git("init", "--quiet", "--initial-branch=main")
	one := commit("one", "namespace \"one\" {}\n")

	fake := forgetest.New("s3cretpath", "fray-bot")
	arrived := make(chan string, 100)
	fake.Before(func(call string) { arrived <- call })
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	var out bytes.Buffer
	a := &terminal.Terminal{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out}
	f, err := newFollowed(t.Context(), a, Options{
		Options: configuration.Options{}, Config: "git " + repo + "@main", Forge: gitops.Options{Kind: forge.GitHub, API: server.URL, Repository: forgetest.Owner + "/" + forgetest.Name},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var reporting sync.WaitGroup
	reporting.Go(func() { f.reporter.Run(ctx) })
	t.Cleanup(func() { cancel(); reporting.Wait() })

	// reported waits until a commit has a status, as far as it is not replaced by a later one before.
	reported := func(commit string, want forge.State, text string) {
		t.Helper()
		timeout, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for {
			found := slices.ContainsFunc(fake.Statuses(commit), func(s forge.Status) bool {
				return s.State == want && strings.Contains(s.Description, text) && s.Context == "fray/watch"
			})
			if found {
				return
			}
			select {
			case <-arrived:
			case <-time.After(50 * time.Millisecond): // the call arrives before its status is kept
			case <-timeout.Done():
				t.Fatalf("commit %s has statuses %+v, want %s %q\n%s", commit, fake.Statuses(commit), want, text, out.String())
			}
		}
	}
	take := func() *state.Document {
		t.Helper()
		if err := f.read(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		doc, err := f.latest.Load().Make(t.Context(), &state.Document{Lineage: "x"})
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	doc := take()
	reported(one, forge.StatePending, "is being read")
	if doc.Followed == nil || doc.Followed.Commit != one || len(doc.Followed.Commits) != 1 || doc.Followed.Commits[0].Author != "Ada" || doc.Followed.Commits[0].Committer != "merger" {
		t.Errorf("the state records %+v, want the commit by Ada", doc.Followed)
	}
	f.latest.Load().Judged(loop.VerdictAccepted, "accepted as revision 1")
	reported(one, forge.StatePending, "accepted as revision 1")
	f.latest.Load().Judged(loop.VerdictCompleted, "revision 1 is carried out")
	reported(one, forge.StateSuccess, "revision 1 is carried out")

	two := commit("two", "namespace \"two\" {\n  nonsense = 1\n}\n")
	if err := f.read(t.Context()); err == nil {
		t.Error("a configuration with a mistake was read")
	}
	reported(two, forge.StateFailure, "has errors")

	// A forge that answers with errors holds up no read.
	server.Close()
	three := commit("three", "namespace \"three\" {}\n")
	doc = take()
	if doc.Followed.Commit != three {
		t.Errorf("the state records %+v, want commit three", doc.Followed)
	}
	if strings.Contains(out.String(), "s3cretpath") {
		t.Errorf("the token is shown:\n%s", out.String())
	}
}
