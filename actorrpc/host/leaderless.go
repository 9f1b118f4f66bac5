package host

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fray-ml/fray/clusterapi"
)

// How long to wait, while nobody leads, before the next try to register.
const (
	hopePause = time.Second
	hopeMost  = 10 * time.Second
)

// registerOnce asks the cluster to register an actor. Leaderless: nobody leads
// at this moment, as this host's agent says, and so nobody could do it.
func (s *Server) registerOnce(ctx context.Context, in *clusterapi.RegisterRequest) (leaderless bool, err error) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, clusterapi.NoWaitHeader, "1"), registerTry)
	defer cancel()
	var trailer metadata.MD
	_, err = s.cfg.Metadata.Register(ctx, in, grpc.Trailer(&trailer))
	return err != nil && slices.Contains(trailer.Get(clusterapi.ReasonTrailer), clusterapi.ReasonNoController), err
}

// hope registers an actor as soon as somebody leads. Until then it is served, and
// counts as ready: a stack that nobody watches has actors all the same.
func (s *Server) hope(a *actor, in *clusterapi.RegisterRequest) {
	for pause := hopePause; ; pause = min(2*pause, hopeMost) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-s.life.Done():
			timer.Stop()
			return
		}
		if a.gone.Load() {
			return
		}
		_, err := s.registerOnce(s.life, in)
		problem := registerError(a.name, err)
		if problem == nil {
			if a.gone.Load() { // meanwhile
				_ = s.withdraw(context.WithoutCancel(s.life), a)
			}
			return
		}
		if problem.Problem != ProblemGaveUp {
			s.log.Error("an actor cannot be registered", "actor", a.name, "error", problem)
			return
		}
	}
}
