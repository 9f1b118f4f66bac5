package gitops

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/github"
	"github.com/fray-ml/fray/forge/gitlab"
)

// Options are where statuses are reported. The zero Options report to the forge of the
// repository if its host is github.com or gitlab.com and there is a token.
type Options struct {
	Kind forge.Kind // "": by the repository's host
	// Repository is its name at the forge, "OWNER/NAME"; "": as the repository's URL has it.
	Repository string
	API        string // base URL of its API; "": the public one, or that of the repository's host
	TokenFile  string // with the token; "": the environment has it
	Version    string // of fray
}

// Variables of the environment that may have the token: the first one that is set counts.
const (
	tokenVariable  = "FRAY_FORGE_TOKEN"
	githubVariable = "GITHUB_TOKEN"
	gitlabVariable = "GITLAB_TOKEN"
)

// Open returns where the statuses of a repository's commits are reported, nil for nowhere.
func Open(repo string, o Options, getenv func(string) string) (Statuses, error) {
	host, path := split(repo)
	path = cmp.Or(o.Repository, path)
	asked := o != Options{Version: o.Version}
	kind := o.Kind
	switch {
	case kind != "":
	case host == "github.com":
		kind = forge.GitHub
	case host == "gitlab.com":
		kind = forge.GitLab
	case asked:
		return nil, errors.New("--forge is missing: write github or gitlab, since the repository's host does not tell which it is")
	default:
		return nil, nil
	}
	token, err := tokenOf(kind, o, getenv)
	switch {
	case err != nil:
		return nil, err
	case token == "" && !asked:
		return nil, nil
	case token == "":
		return nil, fmt.Errorf("there is no token for the forge: set %s, or name a file with --forge-token-file", tokenVariable)
	case path == "":
		return nil, fmt.Errorf("--forge=%s: the URL of the repository, %s, does not have its owner and name: write them as --forge-repository=OWNER/NAME", kind, ShownURL(repo))
	}
	switch kind {
	case forge.GitHub:
		api := o.API
		if api == "" && host != "github.com" && host != "" {
			api = "https://" + host + "/api/v3"
		}
		return github.New(github.Config{API: api, Repository: path, Token: token, Version: o.Version})
	case forge.GitLab:
		api := o.API
		if api == "" && host != "gitlab.com" && host != "" {
			api = "https://" + host + "/api/v4"
		}
		return gitlab.New(gitlab.Config{API: api, Project: path, Token: token, Version: o.Version})
	}
	return nil, fmt.Errorf("--forge=%s: want github or gitlab", kind)
}

func tokenOf(kind forge.Kind, o Options, getenv func(string) string) (string, error) {
	if o.TokenFile != "" {
		data, err := os.ReadFile(o.TokenFile)
		if err != nil {
			return "", fmt.Errorf("--forge-token-file: %w", err)
		}
		token := strings.TrimSpace(string(data))
		if token == "" {
			return "", fmt.Errorf("--forge-token-file: %s is empty", o.TokenFile)
		}
		return token, nil
	}
	if kind == forge.GitLab {
		return cmp.Or(getenv(tokenVariable), getenv(gitlabVariable)), nil
	}
	return cmp.Or(getenv(tokenVariable), getenv(githubVariable)), nil
}

// split is the host of a repository and its path there, "" for what is no repository of a host.
func split(repo string) (host, path string) {
	if u, err := url.Parse(repo); err == nil && u.Host != "" {
		host, path = u.Hostname(), u.Path
	} else if at, rest, ok := strings.Cut(repo, ":"); ok && !strings.Contains(at, "/") { // git@host:owner/name
		host, path = at[strings.LastIndexByte(at, '@')+1:], rest
	}
	path = strings.TrimSuffix(strings.Trim(path, "/"), ".git")
	if strings.Count(path, "/") == 0 {
		path = ""
	}
	return host, path
}
