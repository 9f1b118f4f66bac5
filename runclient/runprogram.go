package runclient

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

	"github.com/fray-ml/fray/agent/proxy"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/terminal"
)

// RunProgram runs a program beside a local address of the cluster API.
func RunProgram(ctx context.Context, a *terminal.Terminal, l *configuration.Loaded, args []string, namespace string) error {
	conn, err := l.Stack.Cluster(ctx, l.Document)
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
	server.Go(func() { _ = proxy.Serve(serving, listener, conn, session, identities.serve) })

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
	program.Stdin, program.Stdout, program.Stderr = a.Stdin, a.Stdout, a.Stderr
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
	return &terminal.Exit{Code: code}
}
