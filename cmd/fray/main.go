// Command fray plans, applies and keeps machine-learning workloads that are
// declared in HCL. Each verb has a file of its own; this package wires and
// prints, and leaves everything else to the packages it calls.
package main

import (
	"context"
	"io"
	"os"
	"runtime/debug"
)

// version is stamped by the linker (see the Makefile).
var version = ""

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := newApp(stdin, stdout, stderr)
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.exitCode(root.ExecuteContext(a.troubled(ctx)))
}

// toolVersion is the stamped version, else what the Go toolchain recorded.
func toolVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}
