package task

import (
	"github.com/fray-ml/fray/clusterapi/token"
)

// token is what the task shows to the cluster API, the same at every call; "" where
// the stack has no mark. It holds for as long as the attempt runs.
func (t *Task) token() string {
	stack := t.host.Stack()
	if stack == "" {
		return ""
	}
	signer, err := token.NewSigner(t.host.Keys.Private(), stack, token.ID{Role: token.RoleHost, Slice: t.host.Slice, Host: t.host.Host})
	if err == nil {
		var text string
		text, err = signer.Mint(token.Claims{
			Subject: token.SubjectJob, Namespace: t.run.Spec.Namespace, JobID: t.run.JobID, Attempt: t.run.Attempt, User: t.run.Spec.User,
		})
		if err == nil {
			return text
		}
	}
	t.host.Log.Error("the task has no token for the cluster API", "error", err)
	return ""
}
