package watch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/controller/loop"
	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/gitops"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/rollout"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// How often files that are followed are read.
const (
	dirPoll = 2 * time.Second
	gitPoll = 30 * time.Second
)

// followed are the files that a watch takes its configuration from.
type followed struct {
	terminal *terminal.Terminal
	flags    configuration.Options
	policies policies.Options
	dir      string // where the files are
	repo     string // of a repository, with ref; "": a directory
	ref      string
	poll     time.Duration

	providers []schema.Provider // as the files declared them first
	latest    atomic.Pointer[loop.Proposal]

	reporter *gitops.Reporter // of statuses of commits, nil: none are reported

	mu   sync.Mutex // held while files are read
	seen string     // digest of the files last read
	// begun is the commit whose status was reported as pending.
	begun string
	keys  *stack.Keys // with which the latest proposal is sealed, nil before the first
}

// newFollowed parses --config: a directory, or git URL@REF.
func newFollowed(ctx context.Context, a *terminal.Terminal, options Options) (*followed, error) {
	source, flags := options.Config, options.Options
	flags.Input = false // the user who started the watch may have gone
	f := &followed{terminal: a, flags: flags, policies: options.Policies, poll: dirPoll}
	url, git := strings.CutPrefix(source, "git ")
	if !git {
		url, git = strings.CutPrefix(source, "git::")
	}
	if !git {
		info, err := os.Stat(source)
		if err != nil || !info.IsDir() {
			return nil, fmt.Errorf("--config=%s: want a directory, or \"git URL@REF\"", source)
		}
		f.dir = source
		return f, nil
	}
	at := strings.LastIndexByte(url, '@')
	if at <= strings.LastIndexByte(url, '/') {
		return nil, fmt.Errorf("--config: name what to follow, as in \"git %s@main\"", gitops.ShownURL(url))
	}
	f.repo, f.ref, f.poll = strings.TrimSpace(url[:at]), url[at+1:], gitPoll
	if _, err := os.Stat(f.repo); err == nil { // on this machine; git runs in another directory
		f.poll = dirPoll
		if f.repo, err = filepath.Abs(f.repo); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("--config: no place for a checkout: %w", err)
	}
	sum := sha256.Sum256([]byte(f.repo + "@" + f.ref))
	f.dir = filepath.Join(cache, "fray", "config", hex.EncodeToString(sum[:8]))
	to, err := gitops.Open(f.repo, options.Forge, os.Getenv)
	if err != nil {
		return nil, err
	}
	if to != nil {
		f.reporter = gitops.NewReporter(to, statusContext(flags.Workspace), newLog(a.Stderr, slog.LevelInfo))
	}
	if err := f.pull(ctx); err != nil {
		return nil, err
	}
	return f, f.outside()
}

// statusContext tells the statuses of several stacks of one repository apart.
func statusContext(workspace string) string {
	if workspace == "" || workspace == schema.DefaultWorkspace {
		return "fray/watch"
	}
	return "fray/watch: " + workspace
}

// shown is what is followed, for people.
func (f *followed) shown() string {
	if f.repo == "" {
		return f.dir
	}
	return gitops.ShownURL(f.repo) + "@" + f.ref
}

// outside rejects a repository whose state would be in its checkout, where
// it is not expected and a cleaner of caches would remove it.
func (f *followed) outside() error {
	where, err := configuration.LocateSite(f.terminal, []string{f.dir}, f.flags)
	if err != nil {
		return err
	}
	at, err := where.Location()
	if err != nil || at.InBucket() || !strings.HasPrefix(string(at), f.dir+string(filepath.Separator)) {
		return err
	}
	return fmt.Errorf("the state of %s@%s would be in its checkout; keep it elsewhere, with a state block in the fray block: in a bucket, or at an absolute path", gitops.ShownURL(f.repo), f.ref)
}

// pull brings the checkout to what the ref is now.
func (f *followed) pull(ctx context.Context) error {
	if f.repo == "" {
		return nil
	}
	if _, err := os.Stat(filepath.Join(f.dir, ".git")); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return fmt.Errorf("make checkout: %w", err)
		}
		if err := f.git(ctx, "init", "--quiet"); err != nil {
			return err
		}
	}
	if err := f.git(ctx, "fetch", "--quiet", "--depth="+strconv.Itoa(gitops.Depth), "--no-tags", "--", f.repo, f.ref); err != nil {
		return err
	}
	return f.git(ctx, "checkout", "--quiet", "--force", "--detach", "FETCH_HEAD")
}

func (f *followed) git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", f.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("follow %s: git %s: %w: %s", f.shown(), args[0], err, gitops.WithoutCredentials(strings.TrimSpace(string(out)), f.repo))
	}
	return nil
}

// run reads the files whenever they change, until ctx ends.
func (f *followed) run(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		last = f.report(ctx, f.read(ctx), last)
		sleep.For(ctx, f.poll)
	}
}

// report logs the outcome of a read unless that was logged last, and returns it.
func (f *followed) report(ctx context.Context, err error, last string) string {
	text := "configuration not read; the last one stands"
	switch {
	case ctx.Err() != nil:
		return last
	case err == nil:
		return ""
	case !errors.Is(err, terminal.ErrReported):
		text += ": " + err.Error()
	}
	if text != last {
		f.terminal.Warn(text)
	}
	return text
}

// read makes a proposal of the files if they are not those of the last time.
func (f *followed) read(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readLocked(ctx)
}

// rekeyed reads the files again where the stack's key is another one than that with
// which the latest proposal is sealed.
func (f *followed) rekeyed(ctx context.Context) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.keys == nil {
		return nil
	}
	changed, err := f.keys.Changed(ctx)
	if err != nil || !changed {
		return err
	}
	f.seen = ""
	f.latest.Store(nil) // what is wrong with the files by now is reported by the next read
	if err := f.readLocked(ctx); err != nil && !errors.Is(err, terminal.ErrReported) {
		return err
	}
	return nil
}

func (f *followed) readLocked(ctx context.Context) error {
	if err := f.pull(ctx); err != nil {
		return err
	}
	digest, err := f.digest(ctx)
	if err != nil || digest == f.seen {
		return err
	}
	if f.repo != "" && digest != f.begun {
		f.begun = digest
		f.reporter.Report(digest, forge.StatePending, "the configuration is being read")
	}
	p, err := f.proposal(ctx, digest)
	if err == nil {
		f.latest.Store(p)
	}
	switch {
	case err == nil || f.repo == "":
	case errors.Is(err, terminal.ErrReported):
		f.reporter.Report(digest, forge.StateFailure, "not accepted: the configuration has errors; fray validate shows them")
	default:
		f.reporter.Report(digest, forge.StateError, "not accepted yet, and tried again: the controller's log has the reason")
	}
	if err == nil || errors.Is(err, terminal.ErrReported) {
		f.seen = digest // what is wrong with the files is reported once; other errors are tried again
	}
	return err
}

func (f *followed) proposal(ctx context.Context, commit string) (*loop.Proposal, error) {
	l, err := configuration.Load(ctx, f.terminal, []string{f.dir}, f.flags, true)
	if err != nil {
		return nil, err
	}
	c, err := proposal.New(l, f.terminal, &proposal.ChangeOptions{Options: f.flags})
	if err != nil {
		return nil, err
	}
	if c.Policies, err = policies.Load(f.terminal, l.Source.Dir(), f.policies); err != nil {
		return nil, err
	}
	if err := l.Upload(ctx, func(string, ...any) {}); err != nil {
		return nil, err
	}
	if f.providers == nil {
		f.providers = l.Desired.Providers
	}
	f.keys = l.Stack.Keys
	if err := rollout.ShipAgent(ctx, l, &state.Document{Desired: l.Desired}, nil); err != nil {
		return nil, err
	}
	var before *state.Document // what the configuration is accepted into
	return &loop.Proposal{
		Name: f.shown(),
		Denied: func(ctx context.Context, _ *plan.Plan, next *state.Document) (string, error) {
			err := c.CheckAccepted(ctx, l, before, next)
			if denied, ok := errors.AsType[*proposal.DeniedError](err); ok {
				return denied.Explained(), nil
			}
			return "", err
		},
		Judged: f.judged(commit),
		Refine: l.Refine(nil),
		Make: func(ctx context.Context, doc *state.Document) (*state.Document, error) {
			if err := l.Stack.CheckHere(doc); err != nil {
				return nil, err
			}
			amended, _, err := c.Amender.Amend(ctx, doc)
			if err != nil {
				return nil, err
			}
			next := proposal.Accept(ctx, l, c, amended)
			next.LocalPlace = l.Stack.Place()
			if err := proposal.CheckPlaceable(l, next); err != nil {
				return nil, err
			}
			before = amended
			return f.merged(ctx, next, commit), nil
		},
	}, nil
}

// judged reports to the forge what became of a commit.
func (f *followed) judged(commit string) func(loop.Verdict, string) {
	if f.repo == "" {
		return nil
	}
	return func(v loop.Verdict, text string) {
		state := forge.StateFailure
		switch v {
		case loop.VerdictCompleted:
			state = forge.StateSuccess
		case loop.VerdictAccepted, loop.VerdictDeferred:
			state = forge.StatePending
		case loop.VerdictSuperseded:
			state = forge.StateError
		case loop.VerdictRejected, loop.VerdictFailed:
		}
		f.reporter.Report(commit, state, text)
	}
}

// merged is an accepted document with the commits that it came with, as far as they are known.
func (f *followed) merged(ctx context.Context, doc *state.Document, commit string) *state.Document {
	if f.repo == "" {
		return doc
	}
	was := state.Followed{}
	if doc.Followed != nil {
		was = *doc.Followed
	}
	now := &state.Followed{Repository: gitops.ShownURL(f.repo), Ref: f.ref, Commit: commit}
	from := was.Commit
	if was.Repository != now.Repository {
		from = ""
	}
	if from == commit {
		return doc
	}
	var err error
	if now.Commits, now.More, err = gitops.Merged(ctx, f.dir, from, commit); err != nil {
		f.terminal.Warn("it is not known who merged what: " + err.Error())
	}
	return planchange.Merged(doc, now)
}

// digest identifies a version of the files: a repository's by its
// commit, a directory's by its configuration files. What else a project has
// there is shipped with the next change of these.
func (f *followed) digest(ctx context.Context) (string, error) {
	if f.repo == "" {
		return filesDigest(f.dir)
	}
	out, err := exec.CommandContext(ctx, "git", "-C", f.dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("follow %s: %w", f.shown(), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// filesDigest is of the configuration files in a directory and below it, but
// for hidden ones.
func filesDigest(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		switch {
		case path != dir && strings.HasPrefix(name, "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir() || !isConfigFile(name):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s\x00%d\x00", path, len(data))
		sum.Write(data)
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func isConfigFile(name string) bool {
	for _, suffix := range []string{".hcl", ".hcl.json", ".frayvars", ".frayvars.json"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}
