package gitlab

import (
	"cmp"
	"context"
	"fmt"

	gitlab "gitlab.com/gitlab-org/api/client-go/v2"

	"github.com/fray-ml/fray/forge"
)

// Pull is a merge request, by its number within the project.
func (c *Client) Pull(ctx context.Context, number int) (forge.Pull, error) {
	var found *gitlab.MergeRequest
	err := c.read(ctx, fmt.Sprintf("read merge request %d", number), func(ctx context.Context) (err error) {
		found, _, err = c.api.MergeRequests.GetMergeRequest(c.project, int64(number), nil, gitlab.WithContext(ctx))
		return err
	})
	if err != nil {
		return forge.Pull{}, err
	}
	return pullOf(&found.BasicMergeRequest), nil
}

func pullOf(m *gitlab.BasicMergeRequest) forge.Pull {
	out := forge.Pull{Number: int(m.IID), Head: m.SHA, Merged: m.State == "merged", Fork: m.SourceProjectID != m.TargetProjectID}
	if out.Merged {
		out.Merge = cmp.Or(m.MergeCommitSHA, m.SquashCommitSHA, m.SHA)
	}
	return out
}

// PullsOf are the merge requests that have a commit, or that it merged.
func (c *Client) PullsOf(ctx context.Context, commit string) ([]forge.Pull, error) {
	var found []*gitlab.BasicMergeRequest
	err := c.read(ctx, "find the merge requests of commit "+commit, func(ctx context.Context) (err error) {
		found, _, err = c.api.Commits.ListMergeRequestsByCommit(c.project, commit, gitlab.WithContext(ctx))
		return err
	})
	var out []forge.Pull
	for _, m := range found {
		out = append(out, pullOf(m))
	}
	return out, err
}

// Files are the files that a merge request changes, without those that it removes.
func (c *Client) Files(ctx context.Context, number int) ([]forge.File, error) {
	found, err := all(ctx, c, fmt.Sprintf("list the files of merge request %d", number), func(ctx context.Context, o gitlab.ListOptions) ([]*gitlab.MergeRequestDiff, *gitlab.Response, error) {
		return c.api.MergeRequests.ListMergeRequestDiffs(c.project, int64(number), &gitlab.ListMergeRequestDiffsOptions{ListOptions: o}, gitlab.WithContext(ctx))
	})
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
	var found *gitlab.MergeRequestApprovals
	err := c.read(ctx, fmt.Sprintf("read the approvals of merge request %d", number), func(ctx context.Context) (err error) {
		found, _, err = c.api.MergeRequestApprovals.GetConfiguration(c.project, int64(number), gitlab.WithContext(ctx))
		return err
	})
	if err != nil {
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

// Comments are the notes of a merge request, the oldest first, without those that GitLab itself writes.
func (c *Client) Comments(ctx context.Context, number int) ([]forge.Comment, error) {
	found, err := all(ctx, c, fmt.Sprintf("list the notes of merge request %d", number), func(ctx context.Context, o gitlab.ListOptions) ([]*gitlab.Note, *gitlab.Response, error) {
		by := &gitlab.ListMergeRequestNotesOptions{ListOptions: o, OrderBy: new("created_at"), Sort: new("asc")}
		return c.api.Notes.ListMergeRequestNotes(c.project, int64(number), by, gitlab.WithContext(ctx))
	})
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
	_, _, err := c.api.Notes.CreateMergeRequestNote(c.project, int64(number), &gitlab.CreateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return asError(fmt.Sprintf("comment on merge request %d", number), err)
}

// EditComment replaces the body of a note. It is not repeated: what is written may be out of date by then.
func (c *Client) EditComment(ctx context.Context, number int, id int64, body string) error {
	_, _, err := c.api.Notes.UpdateMergeRequestNote(c.project, int64(number), id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, gitlab.WithContext(ctx))
	return asError(fmt.Sprintf("edit note %d of merge request %d", id, number), err)
}

// DeleteComment removes a note; one that is gone is no error.
func (c *Client) DeleteComment(ctx context.Context, number int, id int64) error {
	err := c.read(ctx, fmt.Sprintf("delete note %d of merge request %d", id, number), func(ctx context.Context) error {
		_, err := c.api.Notes.DeleteMergeRequestNote(c.project, int64(number), id, gitlab.WithContext(ctx))
		return err
	})
	if forge.IsCause(err, forge.NotFound) {
		return nil
	}
	return err
}
