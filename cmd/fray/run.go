package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
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
launches lives on when it ends. With --namespace it may call the actors of that
namespace, too. The exit code is the program's.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.locate(cmd.Context(), []string{dir}, config)
			if err != nil {
				return err
			}
			if _, served := l.stack.served(cmd.Context()); !served {
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
	server.Go(func() { _ = agent.ServeProxy(serving, listener, conn, session) })

	address := listener.Addr().String()
	program := exec.Command(args[0], args[1:]...)
	program.Env = append(os.Environ(),
		"FRAY_CLUSTER_ADDRESS="+address, "FRAY_CLUSTER_SPEC=fray://"+address, "FRAY_CLIENT_SPEC=fray://"+address, "FRAY_CLUSTER_TOKEN="+session)
	if namespace != "" {
		file, remove, err := identityFile(ctx, l, namespace)
		if err != nil {
			return err
		}
		defer remove()
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

// identityPace is the time between two looks at what a program's identity is to be:
// authorities come and go while it runs, and its own has to be renewed.
const identityPace = 5 * time.Second

// identityFile is where a program finds what it shows to the actors of a namespace.
// It is kept until remove.
func identityFile(ctx context.Context, l *loaded, namespace string) (file string, remove func(), err error) {
	member, err := l.stack.member(ctx, l.doc, namespace)
	if err != nil {
		return "", nil, err
	}
	pem, err := member.File(ctx)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "fray-run-")
	if err != nil {
		return "", nil, fmt.Errorf("keep the identity of namespace %s: %w", namespace, err)
	}
	file = filepath.Join(dir, "actor.pem")
	if err := os.WriteFile(file, pem, 0o600); err != nil {
		return "", nil, errors.Join(fmt.Errorf("keep the identity of namespace %s: %w", namespace, err), os.RemoveAll(dir))
	}
	ctx, cancel := context.WithCancel(ctx)
	var kept sync.WaitGroup
	kept.Go(func() { keepIdentity(ctx, l.stack, member, file, pem) })
	return file, func() {
		cancel()
		kept.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}

// keepIdentity writes a file anew when other authorities count, until ctx ends. What
// fails is tried again: the file that there is goes on to count for a while.
func keepIdentity(ctx context.Context, s *stack, member *clusterkeys.Member, file string, last []byte) {
	renew := time.Now().Add(token.CommandLife / 2)
	for tick := time.NewTicker(identityPace); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		if time.Now().After(renew) && member.Renew(ctx, s.clock.Now(ctx)) == nil {
			renew = time.Now().Add(token.CommandLife / 2)
		}
		pem, err := member.File(ctx)
		if err != nil || bytes.Equal(pem, last) {
			continue
		}
		temp := file + ".new"
		if os.WriteFile(temp, pem, 0o600) == nil && os.Rename(temp, file) == nil {
			last = pem
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
