// Package gitlab calls GitLab's REST API: notes of merge requests, commit statuses, changed
// files, approvals and issues of one project. It decides nothing. The token goes to the API's
// own host alone, and no error has it. Start with New.
package gitlab
