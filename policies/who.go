package policies

import (
	"os"
	"strings"

	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/stack"
)

// Names of continuous integration, in the place of a host's name.
const (
	githubActions = "github-actions"
	gitlabCI      = "gitlab-ci"
)

// Me is who runs this process: the actor of a CI job, or the user of this machine. It is
// what the environment states: a caller that may run commands here can state another.
func Me() policy.Who {
	switch actor := os.Getenv("GITHUB_TRIGGERING_ACTOR"); {
	case os.Getenv("GITHUB_ACTIONS") == "true" && actor != "":
		return policy.Who{User: actor, Host: githubActions, CI: githubActions}
	case os.Getenv("GITHUB_ACTIONS") == "true" && os.Getenv("GITHUB_ACTOR") != "":
		return policy.Who{User: os.Getenv("GITHUB_ACTOR"), Host: githubActions, CI: githubActions}
	case os.Getenv("GITLAB_CI") == "true" && os.Getenv("GITLAB_USER_LOGIN") != "":
		return policy.Who{User: os.Getenv("GITLAB_USER_LOGIN"), Host: gitlabCI, CI: gitlabCI}
	}
	return Named(stack.UserAtHost())
}

// Named is a user of a name USER@HOST.
func Named(name string) policy.Who {
	user, host, _ := strings.Cut(name, "@")
	return policy.Who{User: user, Host: host}
}
