package gitops_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/gitops"
)

// repository is a real one, with a commit by ada.
func repository(t *testing.T) (dir string, commit func(author, subject string) string) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git here")
	}
	dir = t.TempDir()
	run := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=merger", "-c", "user.email=m@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args[0], err, out)
		}
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet", "--initial-branch=main")
	return dir, func(author, subject string) string {
		if err := os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte("# "+subject), 0o600); err != nil {
			t.Fatal(err)
		}
		run("add", "-A")
		run("commit", "--quiet", "--author="+author+" <a@example.com>", "-m", subject)
		return run("rev-parse", "HEAD")
	}
}

func TestMergedNamesWhoMergedWhat(t *testing.T) {
	dir, commit := repository(t)
	first := commit("Ada", "begin")
	commit("Bob", "more chips\n\nfor the sweep")
	last := commit("Eve\x1b[31m", "red "+strings.Repeat("x", 500))
	got, more, err := gitops.Merged(t.Context(), dir, first, last)
	if err != nil || more != 0 || len(got) != 2 {
		t.Fatalf("got %+v, %d more, %v, want the two since the first", got, more, err)
	}
	if want := "commit " + got[1].ID[:12] + " by Bob, committed by merger: more chips"; got[1].String() != want {
		t.Errorf("got %q, want %q", got[1].String(), want)
	}
	if text := got[0].String(); strings.Contains(text, "\x1b") || len(text) > 300 || got[0].ID != last {
		t.Errorf("got %q, want one short line that moves no cursor", text)
	}
	for _, from := range []string{"", "0123456789012345678901234567890123456789"} {
		if got, _, err := gitops.Merged(t.Context(), dir, from, last); err != nil || len(got) != 1 || got[0].ID != last {
			t.Errorf("from %q: got %+v, %v, want the last commit alone", from, got, err)
		}
	}
	for range 30 {
		commit("Bob", "again")
		_ = os.Remove(filepath.Join(dir, "fray.hcl"))
		last = commit("Bob", "once more")
	}
	if got, more, err := gitops.Merged(t.Context(), dir, first, last); err != nil || len(got) != 20 || more != 42 {
		t.Errorf("got %d commits and %d more, %v, want 20 and 42", len(got), more, err)
	}
}

func TestCredentialsOfURLsAreNotShown(t *testing.T) {
	const repo = "https://ada:s3cretpath@git.example.com/acme/train.git"
	if got := gitops.ShownURL(repo); got != "https://git.example.com/acme/train.git" {
		t.Errorf("got %q", got)
	}
	text := gitops.WithoutCredentials("fatal: unable to access '"+repo+"/': and https://s3cretpath@git.example.com/x", repo)
	if strings.Contains(text, "s3cret") || strings.Contains(text, "ada") {
		t.Errorf("got %q, want no credentials", text)
	}
}

func TestOpen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("s3cretpath\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, test := range []struct {
		name, repo string
		o          gitops.Options
		env        map[string]string
		opens      bool
		want       string
	}{
		{"nothing is asked for", "/srv/repo", gitops.Options{}, env, false, ""},
		{"no token", "https://github.com/acme/train.git", gitops.Options{}, env, false, ""},
		{"GitHub's token", "https://github.com/acme/train.git", gitops.Options{}, map[string]string{"GITHUB_TOKEN": "x"}, true, ""},
		{"by ssh", "git@gitlab.com:acme/train.git", gitops.Options{}, map[string]string{"FRAY_FORGE_TOKEN": "x"}, true, ""},
		{"a file", "https://git.example.com/acme/train", gitops.Options{Kind: forge.GitLab, TokenFile: file}, env, true, ""},
		{"no such file", "https://github.com/acme/train", gitops.Options{TokenFile: file + "x"}, env, false, "--forge-token-file: open"},
		{"another kind", "https://github.com/acme/train", gitops.Options{Kind: "gitea", TokenFile: file}, env, false, "want github or gitlab"},
		{"no kind", "https://git.example.com/acme/train", gitops.Options{TokenFile: file}, env, false, "--forge is missing"},
		{"no token, asked for", "https://github.com/acme/train", gitops.Options{Kind: forge.GitHub}, env, false, "set FRAY_FORGE_TOKEN"},
		{"no name", "/srv/repo", gitops.Options{Kind: forge.GitHub, TokenFile: file}, env, false, "--forge-repository=OWNER/NAME"},
		{"a name", "/srv/repo", gitops.Options{Kind: forge.GitHub, TokenFile: file, Repository: "acme/train"}, env, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := gitops.Open(test.repo, test.o, func(name string) string { return test.env[name] })
			if (got != nil) != test.opens || (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v, want one %v and error %q", got, err, test.opens, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error shows the token: %v", err)
			}
		})
	}
}

// fake is a forge that answers as it is told to.
type fake struct {
	mu   sync.Mutex
	err  error
	hang chan struct{} // nil: it does not
	got  []string
}

func (f *fake) SetStatus(ctx context.Context, commit string, s forge.Status) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hang != nil {
		hang := f.hang
		f.mu.Unlock()
		select {
		case <-hang:
		case <-ctx.Done():
		}
		f.mu.Lock()
	}
	if f.err != nil {
		return f.err
	}
	f.got = append(f.got, commit+" "+string(s.State)+" "+s.Description)
	return nil
}

var _ gitops.Statuses = (*fake)(nil)

// A forge that is down, or hangs, holds up nothing; of each commit the last status arrives once it is there.
func TestReporter(t *testing.T) {
	for _, down := range []string{"fails", "hangs"} {
		t.Run(down, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				to := &fake{}
				if down == "fails" {
					to.err = errors.New("HTTP 503")
				} else {
					to.hang = make(chan struct{})
				}
				r := gitops.NewReporter(to, "fray/watch", slog.New(slog.NewTextHandler(&log, nil)))
				ctx, cancel := context.WithCancel(t.Context())
				go r.Run(ctx)
				began := time.Now()
				r.Report("one", forge.StatePending, "is read")
				r.Report("one", forge.StateSuccess, "revision 1")
				for range 100 {
					r.Report("two", forge.StatePending, "is read")
				}
				r.Report("two", forge.StateFailure, "denied")
				if took := time.Since(began); took > 0 {
					t.Errorf("reports took %s", took)
				}
				time.Sleep(time.Minute) // of the bubble
				to.mu.Lock()
				to.err = nil
				if to.hang != nil {
					close(to.hang)
				}
				to.mu.Unlock()
				time.Sleep(10 * time.Minute)
				cancel()
				synctest.Wait()
				got := strings.Join(to.got, "\n")
				if !strings.Contains(got, "one success revision 1") || !strings.Contains(got, "two failure denied") || strings.Count(got, "two") != 1 {
					t.Errorf("the forge got:\n%s", got)
				}
				if n := strings.Count(log.String(), "is not reported"); down == "fails" && n != 1 {
					t.Errorf("logged %d times that the forge is down, want once:\n%s", n, log.String())
				}
			})
		})
	}
	var none *gitops.Reporter
	none.Report("one", forge.StatePending, "")
	none.Run(t.Context())
}
