package runclient

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/durable"
)

// identityPace is the time between two checks of what a program's identities are to be:
// authorities come and go while it runs, and its own has to be renewed.
const identityPace = 5 * time.Second

// identities are the files by which a program that fray run has started is a member of
// namespaces: one for each namespace that was asked for, kept up to date until close.
type identities struct {
	ctx    context.Context
	cancel context.CancelFunc
	l      *configuration.Loaded
	dir    string
	kept   sync.WaitGroup

	mu     sync.Mutex
	member *clusterkeys.Member // nil: no namespace was asked for
	files  map[string][]byte   // the last content, by namespace
}

func newIdentities(ctx context.Context, l *configuration.Loaded) (*identities, error) {
	dir, err := os.MkdirTemp("", "fray-run-")
	if err != nil {
		return nil, fmt.Errorf("keep the identities of a program: %w", err)
	}
	i := &identities{l: l, dir: dir, files: map[string][]byte{}}
	i.ctx, i.cancel = context.WithCancel(ctx)
	return i, nil
}

// close removes the files.
func (i *identities) close() {
	i.mu.Lock()
	i.cancel()
	i.mu.Unlock()
	i.kept.Wait()
	_ = os.RemoveAll(i.dir)
}

// serve answers Client.Identity.
func (i *identities) serve(ctx context.Context, namespace string) (string, error) {
	if namespace == "" {
		return "", status.Error(codes.InvalidArgument, "namespace: say which: a user belongs to none")
	}
	file, err := i.file(ctx, namespace)
	if err != nil {
		return "", status.Error(codes.FailedPrecondition, err.Error())
	}
	return file, nil
}

// file is where the identity of a namespace is, which is up to date then: a program asks
// again when it meets an authority that it does not know.
func (i *identities) file(ctx context.Context, namespace string) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.ctx.Err() != nil {
		return "", errors.New("fray run is about to end")
	}
	if i.member == nil {
		member, err := i.l.Stack.Member(ctx, i.l.Document)
		if err != nil {
			return "", err
		}
		i.member = member
		i.kept.Go(i.keep)
	}
	_, written := i.files[namespace]
	if err := i.writeLocked(ctx, namespace); err != nil && !written { // else the former content goes on to count
		return "", fmt.Errorf("keep the identity of namespace %s: %w", namespace, err)
	}
	return i.path(namespace), nil
}

func (i *identities) path(namespace string) string {
	return filepath.Join(i.dir, fmt.Sprintf("%x.pem", sha256.Sum256([]byte(namespace))))
}

// writeLocked writes the file of a namespace where it is to have another content.
func (i *identities) writeLocked(ctx context.Context, namespace string) error {
	pem, err := i.member.File(ctx, namespace)
	if err != nil || bytes.Equal(pem, i.files[namespace]) {
		return err
	}
	path := i.path(namespace)
	if err := durable.WriteFile(path, pem, 0o600); err != nil {
		return err
	}
	i.files[namespace] = pem
	return nil
}

// keep writes files anew when other authorities count. What fails is tried again: the
// files that there are go on to count for a while.
func (i *identities) keep() {
	renew := time.Now().Add(token.CommandLife / 2)
	tick := time.NewTicker(identityPace)
	defer tick.Stop()
	for {
		select {
		case <-i.ctx.Done():
			return
		case <-tick.C:
		}
		if time.Now().After(renew) && i.member.Renew(i.ctx, i.l.Stack.Clock.Now(i.ctx)) == nil {
			renew = time.Now().Add(token.CommandLife / 2)
		}
		i.mu.Lock()
		for namespace := range i.files {
			_ = i.writeLocked(i.ctx, namespace)
		}
		i.mu.Unlock()
	}
}
