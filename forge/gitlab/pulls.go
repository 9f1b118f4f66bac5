package gitlab

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/fray-ml/fray/forge"
)

// mergeRequest is one as GitLab has it.
type mergeRequest struct {
	IID             int    `json:"iid"`
	SHA             string `json:"sha"`
	State           string `json:"state"`
	SourceProjectID int64  `json:"source_project_id"`
	TargetProjectID int64  `json:"target_project_id"`
	MergeCommitSHA  string `json:"merge_commit_sha"`
	SquashCommitSHA string `json:"squash_commit_sha"`
}

func (m mergeRequest) forge() forge.Pull {
	out := forge.Pull{Number: m.IID, Head: m.SHA, Merged: m.State == "merged", Fork: m.SourceProjectID != m.TargetProjectID}
	if out.Merged {
		out.Merge = cmp.Or(m.MergeCommitSHA, m.SquashCommitSHA, m.SHA)
	}
	return out
}

// mergeRequestPath is the path of calls about a merge request.
func (c *Client) mergeRequestPath(number int) string {
	return c.project + "merge_requests/" + strconv.Itoa(number)
}

// Pull is a merge request, by its number within the project.
func (c *Client) Pull(ctx context.Context, number int) (forge.Pull, error) {
	var found mergeRequest
	if err := c.repeat(ctx, fmt.Sprintf("read merge request %d", number), call{method: http.MethodGet, path: c.mergeRequestPath(number)}, &found); err != nil {
		return forge.Pull{}, err
	}
	return found.forge(), nil
}

// PullsOf are the merge requests that have a commit, or that it merged.
func (c *Client) PullsOf(ctx context.Context, commit string) ([]forge.Pull, error) {
	var found []mergeRequest
	err := c.repeat(ctx, "find the merge requests of commit "+commit,
		call{method: http.MethodGet, path: c.project + "repository/commits/" + escaped(commit) + "/merge_requests"}, &found)
	var out []forge.Pull
	for _, m := range found {
		out = append(out, m.forge())
	}
	return out, err
}

// changedFile is a file that a merge request changes.
type changedFile struct {
	NewPath     string `json:"new_path"`
	Diff        string `json:"diff"`
	DeletedFile bool   `json:"deleted_file"`
}

// Files are the files that a merge request changes, without those that it removes.
func (c *Client) Files(ctx context.Context, number int) ([]forge.File, error) {
	found, err := all[changedFile](ctx, c, fmt.Sprintf("list the files of merge request %d", number), c.mergeRequestPath(number)+"/diffs", nil)
	var out []forge.File
	for _, f := range found {
		if !f.DeletedFile {
			out = append(out, forge.File{Path: f.NewPath, Lines: forge.LinesOf(f.Diff)})
		}
	}
	return out, err
}

// Approvals are the approvals that hold. GitLab does not record of which commit, and a
// project may keep them when commits are added.
func (c *Client) Approvals(ctx context.Context, number int) ([]forge.Approval, error) {
	var found struct {
		ApprovedBy []struct {
			User *user `json:"user"`
		} `json:"approved_by"`
	}
	doing := fmt.Sprintf("read the approvals of merge request %d", number)
	if err := c.repeat(ctx, doing, call{method: http.MethodGet, path: c.mergeRequestPath(number) + "/approvals"}, &found); err != nil {
		return nil, err
	}
	var out []forge.Approval
	for _, by := range found.ApprovedBy {
		if by.User != nil {
			out = append(out, forge.Approval{By: by.User.Username})
		}
	}
	return out, nil
}

// note is one of a merge request.
type note struct {
	ID     int64  `json:"id"`
	Body   string `json:"body"`
	System bool   `json:"system"`
	Author user   `json:"author"`
}

// noteText is what is set of a note.
type noteText struct {
	Body string `json:"body"`
}

// Comments are the notes of a merge request, the oldest first, without those that GitLab itself writes.
func (c *Client) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	found, err := all[note](ctx, c, fmt.Sprintf("list the notes of merge request %d", number), c.mergeRequestPath(number)+"/notes",
		url.Values{"order_by": {"created_at"}, "sort": {"asc"}})
	var out []forge.Comment
	for _, n := range found {
		if !n.System {
			out = append(out, forge.Comment{ID: n.ID, Author: n.Author.Username, Body: n.Body})
		}
	}
	return out, err
}

// CreateComment adds a note to a merge request. It is not repeated where its outcome is not known.
func (c *Client) CreateComment(ctx context.Context, number int, body string) error {
	return c.once(ctx, fmt.Sprintf("comment on merge request %d", number),
		call{method: http.MethodPost, path: c.mergeRequestPath(number) + "/notes", body: noteText{body}}, nil)
}

// EditComment replaces the body of a note. It is not repeated: what is written may be out of date by then.
func (c *Client) EditComment(ctx context.Context, number int, id int64, body string) error {
	return c.once(ctx, fmt.Sprintf("edit note %d of merge request %d", id, number),
		call{method: http.MethodPut, path: c.notePath(number, id), body: noteText{body}}, nil)
}

// DeleteComment removes a note; one that is gone is no error.
func (c *Client) DeleteComment(ctx context.Context, number int, id int64) error {
	err := c.repeat(ctx, fmt.Sprintf("delete note %d of merge request %d", id, number), call{method: http.MethodDelete, path: c.notePath(number, id)}, nil)
	if forge.IsCause(err, forge.NotFound) {
		return nil
	}
	return err
}

func (c *Client) notePath(number int, id int64) string {
	return c.mergeRequestPath(number) + "/notes/" + strconv.FormatInt(id, 10)
}
