package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// keeper makes and checks the stack's tokens. With create a stack without a key
// gets one, as for secrets.
func (s *stack) keeper(ctx context.Context, doc *state.Document, create bool) (*token.Keeper, error) {
	sealer, err := s.sealer(ctx, doc, create)
	if err != nil {
		return nil, err
	}
	return keeperOf(sealer, doc.Stack())
}

func keeperOf(sealer schema.Sealer, stack string) (*token.Keeper, error) {
	from, ok := sealer.(schema.Deriver)
	if !ok {
		return nil, errors.New("the stack's key cannot be used for tokens")
	}
	return token.New(from, stack)
}

// minter makes what the tasks of an attempt show to the cluster API, whoever
// leads when they do. Where the stack's key is out of reach there is none.
func (s *stack) minter(ctx context.Context, doc *state.Document) func(*store.Run) (schema.Text, error) {
	sealer, err := s.sealer(ctx, doc, true)
	if err != nil {
		return nil
	}
	tokens, err := keeperOf(sealer, doc.Stack())
	if err != nil {
		return nil
	}
	return (&controller.Service{Tokens: tokens, Sealer: sealer, Stack: doc.Stack()}).Token
}

// minted is no token without a minter.
func minted(mint func(*store.Run) (schema.Text, error), run *store.Run) (schema.Text, error) {
	if mint == nil {
		return schema.Text{}, nil
	}
	return mint(run)
}

// userToken makes a token of this user for each call, by the clock of who will
// judge it.
func userToken(k *token.Keeper, stack string) func(now time.Time) (string, error) {
	return func(now time.Time) (string, error) {
		return k.Mint(token.Claims{
			Stack: stack, Subject: token.SubjectUser, User: whoever(), Expires: now.Add(token.UserLife),
		})
	}
}

// hostToken is a user's token for a host. It judges by the clock of whoever
// leads, or, where nobody does, by its own, as its last report shows it.
func (s *stack) hostToken(mint func(now time.Time) (string, error), reported time.Time) dial.Token {
	return func(ctx context.Context) (string, error) {
		now := s.clock.Now(ctx)
		if reported.After(now) {
			now = reported
		}
		return mint(now)
	}
}

// cluster connects to the controller that leads the stack, as this user. Who
// may read the stack's key may do everything.
func (s *stack) cluster(ctx context.Context, doc *state.Document) (*dial.Following, error) {
	if err := s.keyFor(ctx, doc); err != nil {
		return nil, err
	}
	if _, err := s.keys.open(ctx); err != nil { // a new one would be refused
		return nil, fmt.Errorf("connect to the controller: the stack's key, which shows who may, is not to be had: %w", err)
	}
	k, err := s.keeper(ctx, doc, false)
	if err != nil {
		return nil, fmt.Errorf("connect to the controller: %w", err)
	}
	return dial.Follow(dial.FollowConfig{Store: s.store, Token: userToken(k, doc.Stack())}), nil
}

// served is the lease of a controller that leads and serves the cluster API,
// false if there is none.
func (s *stack) served(ctx context.Context) (store.Lease, bool) {
	lease, ok := s.watch(ctx)
	return lease, ok && lease.ControllerAddress != ""
}
