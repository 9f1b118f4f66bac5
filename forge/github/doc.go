// Package github calls GitHub's REST API, by Google's client library: comments of pull
// requests, commit statuses, changed files, approvals and issues of one repository. It
// decides nothing. The token goes to the API's own host alone, and no error has it. Start
// with New.
package github
