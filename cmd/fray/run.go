package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent"
)

func runCommand(a *app) *cobra.Command {
	var config configFlags
	var dir, namespace string
	cmd := &cobra.Command{
		Use:   "run -- COMMAND [ARG...]",
		Short: "Run a program of this machine as a client of the cluster",
		Long: `Run a program here that launches jobs on the stack: it finds the cluster that
fray watch serves in FRAY_CLUSTER_SPEC and FRAY_CLUSTER_TOKEN, as a job does, and
acts as the user who runs it, who must be allowed to write to the stack's store. What it
launches lives on when it ends. It may call the actors of every namespace; without
--namespace it works in the one that its first launch or reservation founds. The exit
code is the program's.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			if !l.stack.awaitServed(cmd.Context()) {
				return errors.New("no controller serves this stack: start fray watch, here or elsewhere, and try again")
			}
			return a.runClient(cmd.Context(), l, args, namespace)
		},
	}
	cmd.Flags().SetInterspersed(false)
	config.register(cmd)
	cmd.Flags().StringVar(&namespace, "namespace", "", "the `NAME` of the namespace that the program works in (FRAY_NAMESPACE)")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "as a client of the stack of `DIR` (or of one file)")
	return cmd
}

// runClient runs a program beside a local address of the cluster API.
func (a *app) runClient(ctx context.Context, l *loaded, args []string, namespace string) error {
	conn, err := l.stack.cluster(ctx, l.doc)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serve the cluster API here: %w", err)
	}
	session := rand.Text()
	serving, stop := context.WithCancel(ctx)
	var server sync.WaitGroup
	defer server.Wait()
	defer stop()
	identities, err := newIdentities(serving, l)
	if err != nil {
		return err
	}
	defer identities.close()
	server.Go(func() { _ = agent.ServeProxy(serving, listener, conn, session, identities.serve) })

	address := listener.Addr().String()
	program := exec.Command(args[0], args[1:]...)
	program.Env = append(os.Environ(),
		"FRAY_CLUSTER_ADDRESS="+address, "FRAY_CLUSTER_SPEC=fray://"+address, "FRAY_CLIENT_SPEC=fray://"+address, "FRAY_CLUSTER_TOKEN="+session)
	if namespace != "" {
		file, err := identities.file(ctx, namespace)
		if err != nil {
			return err
		}
		program.Env = append(program.Env, "FRAY_NAMESPACE="+namespace, "FRAY_ACTOR_IDENTITY="+file)
	}
	program.Stdin, program.Stdout, program.Stderr = a.stdin, a.stdout, a.stderr
	// A Ctrl-C is for the program, which gets it from the terminal too.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	if err := program.Start(); err != nil {
		return fmt.Errorf("fray run: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- program.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = program.Process.Signal(s)
			}
		case err := <-ended:
			return programEnd(err)
		}
	}
}

// programEnd makes a program's end fray's own.
func programEnd(err error) error {
	failed, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	code := failed.ExitCode()
	if status, ok := failed.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return &exit{code: code}
}
