// Package forge has the types that clients of code forges (GitHub, GitLab) share: pull
// requests, comments, commit statuses, issues, and the errors of their calls. It calls
// nothing: forge/github and forge/gitlab do, and each of their consumers declares the
// few methods that it needs. Start with Comment and Error.
package forge
