package apiserver

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/caller"
)

// authenticate checks the token of a call before anything else of it is read.
// What it says is taken into the context; whether a job's attempt still runs
// is asked later, since that may have to wait.
func (s *Server) authenticate(ctx context.Context, info *tap.Info) (context.Context, error) {
	if open(info.FullMethodName) {
		return ctx, nil
	}
	text, ok := dial.BearerToken(info.Header.Get(dial.Header))
	if !ok {
		err := status.Error(codes.Unauthenticated, `no token: send "authorization: Bearer TOKEN" with the task's FRAY_CLUSTER_TOKEN, or use the fray command`)
		s.logRejection(ctx, info.FullMethodName, err)
		return nil, err
	}
	claims, err := s.verify(ctx, text)
	if err != nil {
		if ctx.Err() == nil { // else the caller has given up
			s.logRejection(ctx, info.FullMethodName, err)
		}
		return nil, err
	}
	who, err := callerFrom(claims)
	if err == nil {
		return caller.With(ctx, who), nil
	}
	err = status.Error(codes.PermissionDenied, err.Error())
	s.logRejection(caller.With(ctx, who), info.FullMethodName, err)
	return nil, err
}

// verify checks a token. That its key cannot be looked up now is no verdict.
func (s *Server) verify(ctx context.Context, text string) (token.Claims, error) {
	ctx, cancel := context.WithTimeout(ctx, VerifyTimeout)
	defer cancel()
	claims, err := s.cfg.Tokens.Verify(ctx, text, s.cfg.Now())
	return claims, dial.TokenStatus(err)
}

// callerFrom is who a token speaks for. Controllers have tokens for hosts, not for the
// cluster API.
func callerFrom(c token.Claims) (caller.Caller, error) {
	who := caller.Caller{Stack: c.Stack, Namespace: c.Namespace, JobID: c.JobID, Attempt: c.Attempt, User: c.User,
		Slice: c.Signer.Slice, Host: c.Signer.Host}
	switch c.Subject {
	case token.SubjectJob:
		who.Kind = caller.Job
		return who, nil
	case token.SubjectUser:
		who.Kind = caller.User
		return who, nil
	case token.SubjectHost:
		who.Kind = caller.Host
		return who, nil
	case token.SubjectController:
		who.Kind = caller.Controller
	case token.SubjectRelayed: // its relay has the token, too
	}
	return who, fmt.Errorf("the token of a %s is not for the cluster API", c.Subject)
}

// errUnseen says that an attempt is newer than what the loop has seen.
var errUnseen = errors.New("the controller has not seen this attempt yet")
