package lint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// words warns of a command that was written as for a shell, which there is none
// between fray and the program.
func (l *jobLint) words(e *eval.Evaluator, decl *configs.Declaration, j *schema.Job) {
	x := decl.Block.Attr("command")
	if x == nil || len(j.Command) == 0 || j.Labels["shell"] == "none" || hasSecret(j.Command) {
		return
	}
	words := make([]string, 0, len(j.Command))
	for _, word := range j.Command {
		words = append(words, inClear(word))
	}
	what := l.shellWord(words)
	if what == "" {
		return
	}
	e.WarnAt(x.Expr.Range(), "No shell", fmt.Sprintf(
		"%s runs its program without a shell, so that %s. Write a line of shell as %s. If it is meant as it is, write labels = { shell = \"none\" }.",
		decl.Addr, what, inShell(x, words)))
}

func hasSecret(words []schema.Text) bool {
	return slices.ContainsFunc(words, func(t schema.Text) bool { return t.IsSensitive() })
}

// shellWord is what of a command only a shell would read, as it is without one; "" for
// nothing.
func (l *jobLint) shellWord(words []string) string {
	first := words[0]
	if strings.ContainsAny(strings.TrimSpace(first), " \t\n") {
		return fmt.Sprintf("the program would be one of the name %q", first)
	}
	if isInterpreter(first) {
		return ""
	}
	for _, word := range words[1:] {
		if found := l.env.FindStringSubmatch(word); found != nil {
			return fmt.Sprintf("nothing puts a value in the place of %s", found[1])
		}
		if slices.Contains([]string{"&&", "||", "|", ">", ">>", "<", ";", "&", "2>&1"}, word) {
			return fmt.Sprintf("%s is one more argument", word)
		}
	}
	return ""
}

// isInterpreter reports whether a program reads variables and operators among its
// arguments itself.
func isInterpreter(program string) bool {
	return slices.Contains([]string{
		"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox", "ssh", "awk", "gawk", "mawk", "perl", "ruby", "make", "xargs", "find", "expr", "test", "[",
	}, path.Base(program))
}

// inShell is a command as a line of shell, written as an attribute would have it.
func inShell(x *configs.Expression, words []string) string {
	line := strings.Join(words, " ")
	const most = 60
	if _, written := x.Expr.(*hclsyntax.TupleConsExpr); !written || len(line) > most || strings.ContainsAny(line, "\"\n\\") {
		line = "…"
	}
	return fmt.Sprintf("[\"sh\", \"-c\", \"%s\"]", strings.ReplaceAll(line, "${", "$${"))
}
