// Command fray plans, applies and keeps machine-learning workloads that are
// declared in HCL. Each verb has a file of its own; this package wires and
// prints, and leaves everything else to the packages it calls.
package main

import (
	"context"
	"io"
	"os"

	"github.com/fray-ml/fray/commandline"
	"github.com/fray-ml/fray/terminal"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := terminal.New(stdin, stdout, stderr)
	root := rootFor(a, args)
	args = commandline.LongFlags(root, args)
	if err := commandline.CheckVerb(root, args); err != nil {
		return a.ExitCode(err)
	}
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.ExitCode(root.ExecuteContext(withProblems(ctx, a)))
}
