package gitops

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"unicode"

	"github.com/fray-ml/fray/state"
)

// maxCommits is how many commits of one merge are named.
const maxCommits = 20

// Depth is how much of a history is fetched, so that what was merged is known.
const Depth = 50

// Merged returns the commits of a checkout that are in one commit and not in another one, newest
// first, and how many more there are. Where the former is "" or not in the history that
// was fetched, it is the one commit alone.
func Merged(ctx context.Context, dir, from, to string) ([]state.Commit, int, error) {
	span := []string{"-1", to}
	if from != "" && from != to && git(ctx, dir, "merge-base", "--is-ancestor", from, to) == nil {
		span = []string{from + ".." + to}
	}
	args := append([]string{"log", "-z", "--format=%H%x1f%an%x1f%cn%x1f%s"}, span...)
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, append(args, "--")...)...).Output()
	if err != nil {
		return nil, 0, fmt.Errorf("read the history: git log: %w", err)
	}
	var commits []state.Commit
	more := 0
	for record := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		fields := strings.SplitN(record, "\x1f", 4)
		if len(fields) != 4 {
			continue
		}
		if len(commits) == maxCommits {
			more++
			continue
		}
		c := state.Commit{ID: fields[0], Author: line(fields[1]), Subject: line(fields[3])}
		if committer := line(fields[2]); committer != c.Author {
			c.Committer = committer
		}
		commits = append(commits, c)
	}
	return commits, more, nil
}

func git(ctx context.Context, dir string, args ...string) error {
	err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return fmt.Errorf("git %s: %w", args[0], err)
	}
	return err
}

// line makes one line of a text that others have written, without what moves a cursor.
func line(text string) string {
	const most = 160 // runes
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	return strings.TrimSpace(text)
}

// ShownURL is a repository without user name and password, which may be a token.
func ShownURL(repo string) string {
	u, err := url.Parse(repo)
	if err != nil || u.User == nil || u.Host == "" {
		return repo
	}
	u.User = nil
	return u.String()
}

// WithoutCredentials is what git prints, without user names and passwords of URLs.
func WithoutCredentials(text, repo string) string {
	userinfo := regexp.MustCompile(`(https?://)[^/@\s']+@`)
	return userinfo.ReplaceAllString(strings.ReplaceAll(text, repo, ShownURL(repo)), "$1")
}
