package register

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/plan/markdown"
)

// MarkdownOptions are how a plan is shown for a review.
type MarkdownOptions struct {
	On         bool
	Characters int
}

// Markdown registers that a plan is shown as Markdown.
func Markdown(f *MarkdownOptions, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.On, "markdown", false, "print Markdown for a review (docs/guides/reviews.md)")
	cmd.Flags().IntVar(&f.Characters, "markdown-limit", markdown.DefaultCharacters, "leave out details of what exceeds `N` characters of Markdown; 0: nothing is left out")
}

// Limit is how long the Markdown may be, or an error where the flags contradict others.
func (f *MarkdownOptions) Limit(cmd *cobra.Command, asJSON bool) (markdown.Limit, error) {
	switch {
	case f.On && asJSON:
		return markdown.Limit{}, errors.New("--markdown and --json exclude each other: leave one out")
	case !f.On && cmd.Flags().Changed("markdown-limit"):
		return markdown.Limit{}, errors.New("--markdown-limit goes with --markdown: add it, or leave the limit out")
	case f.Characters < 0 || f.Characters > 0 && f.Characters < markdown.LeastCharacters:
		return markdown.Limit{}, fmt.Errorf("invalid --markdown-limit %d: want %d characters or more, or 0 for no limit", f.Characters, markdown.LeastCharacters)
	case f.Characters == 0:
		return markdown.Limit{Characters: -1}, nil
	}
	return markdown.Limit{Characters: f.Characters}, nil
}
