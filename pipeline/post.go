package pipeline

import (
	"context"

	"github.com/fray-ml/fray/forge"
	"github.com/fray-ml/fray/forge/retry"
	"github.com/fray-ml/fray/review"
)

// Comments are the comments of a pull request.
type Comments interface {
	Author(ctx context.Context) (string, error)
	Pull(ctx context.Context, number int) (forge.Pull, error)
	Comments(ctx context.Context, number int) ([]forge.Comment, error)
	CreateComment(ctx context.Context, number int, body string) error
	EditComment(ctx context.Context, number int, id int64, body string) error
	DeleteComment(ctx context.Context, number int, id int64) error
}

// post is a comment to be written.
type post struct {
	forge  Comments
	pull   int
	wanted review.Wanted
	// late says that the comment counts also once the pull request has a newer commit, as that of an
	// apply does.
	late bool
}

// maxWrites bounds how often a comment is written again because another run wrote it meanwhile.
const maxWrites = 4

// write has the pull request show the comment, unless that of a newer commit or run is there.
// No forge replaces a comment only if it is as it was, so that write reads again what it has
// written, until it finds nothing to do. A call that failed is decided anew before it is repeated:
// another run may have written meanwhile.
func (p *post) write(ctx context.Context) (review.Choice, error) {
	var err error
	if p.wanted.Author, err = p.forge.Author(ctx); err != nil {
		return review.Choice{}, err
	}
	var wrote review.Choice
	for range maxWrites {
		var choice review.Choice
		err := retry.Do(ctx, func(ctx context.Context) (err error) {
			choice, err = p.once(ctx)
			return err
		})
		if choice.Action == review.Edit && forge.IsCause(err, forge.NotFound) {
			continue // the comment was removed since it was listed
		}
		if err != nil {
			return choice, err
		}
		if choice.Action == review.Leave {
			if wrote.Action == "" {
				return choice, nil
			}
			return wrote, nil
		}
		wrote = choice
	}
	return wrote, nil
}

// once reads, decides and writes. The head is read last, directly before the write.
func (p *post) once(ctx context.Context) (review.Choice, error) {
	found, err := p.forge.Comments(ctx, p.pull)
	if err != nil {
		return review.Choice{}, err
	}
	if !p.late {
		pull, err := p.forge.Pull(ctx, p.pull)
		if err != nil {
			return review.Choice{}, err
		}
		p.wanted.Head = pull.Head
	}
	choice := review.Choose(found, p.wanted)
	switch choice.Action {
	case review.Create:
		err = p.forge.CreateComment(ctx, p.pull, p.wanted.Body)
	case review.Edit:
		err = p.forge.EditComment(ctx, p.pull, choice.ID, p.wanted.Body)
	case review.Leave:
	}
	if err != nil {
		return choice, err
	}
	for _, id := range choice.Remove {
		if err := p.forge.DeleteComment(ctx, p.pull, id); err != nil {
			return choice, err
		}
	}
	return choice, nil
}
