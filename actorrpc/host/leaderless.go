package host

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/fray-ml/fray/clusterapi"
)

// How long to wait, while no controller leads, before the next try to register.
const (
	leaderlessPause = time.Second
	leaderlessMost  = 10 * time.Second
)

// registerOnce asks the cluster to register an actor. Leaderless: no controller
// leads at this moment, as this host's agent reports.
func (r *registrar) registerOnce(ctx context.Context, in *clusterapi.RegisterRequest) (leaderless bool, err error) {
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(ctx, clusterapi.NoWaitHeader, "1"), registerTry)
	defer cancel()
	var trailer metadata.MD
	_, err = r.cfg.Metadata.Register(ctx, in, grpc.Trailer(&trailer))
	return err != nil && slices.Contains(trailer.Get(clusterapi.ReasonTrailer), clusterapi.ReasonNoController), err
}

// keepTrying registers an actor as soon as a controller leads. Until then it is served, and
// counts as ready: a stack without a controller has actors all the same.
func (r *registrar) keepTrying(a *actor, in *clusterapi.RegisterRequest) {
	for pause := leaderlessPause; ; pause = min(2*pause, leaderlessMost) {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-r.life.Done():
			timer.Stop()
			return
		}
		if a.gone.Load() {
			return
		}
		_, err := r.registerOnce(r.life, in)
		problem := registerError(a.name, err)
		if problem == nil {
			if a.gone.Load() { // meanwhile
				_ = r.withdraw(context.WithoutCancel(r.life), a)
			}
			return
		}
		if problem.Problem != ProblemGaveUp {
			r.log.Error("an actor cannot be registered", "actor", a.name, "error", problem)
			return
		}
	}
}
