package roles

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/validation"
	"github.com/fray-ml/fray/sleep"
)

// remoteLoader reads a loader's status.
type remoteLoader struct {
	peers Peers
	name  rl.Role
}

func (l remoteLoader) Status(ctx context.Context) (rl.LoaderStatus, error) {
	return ask[rl.LoaderStatus](ctx, l.peers, string(l.name), "status")
}

// remoteNotifier reports batches to the weight sync controller.
type remoteNotifier struct{ peers Peers }

func (n remoteNotifier) BatchReady(ctx context.Context, tag rl.ModelTag, batchID string) error {
	name := string(rl.WeightSyncController)
	if _, err := n.peers.Call(ctx, name, "trajectory_pool_notify_batch_ready", tag, batchID); err != nil {
		return fmt.Errorf("%s.trajectory_pool_notify_batch_ready: %w", name, err)
	}
	return nil
}

// remoteMetrics has metrics logged by the activity tracker, at its step.
type remoteMetrics struct {
	peers    Peers
	backends []rl.LoggerBackend
}

// LogMetrics waits for a tracker that is being restarted: the validation has no other result.
func (m remoteMetrics) LogMetrics(ctx context.Context, measured validation.Measured) error {
	for {
		err := m.log(ctx, measured)
		if err == nil || !away(err) || !sleep.For(ctx, firstWait) {
			return err
		}
	}
}

func (m remoteMetrics) log(ctx context.Context, measured validation.Measured) error {
	name := string(rl.ActivityTracker)
	step, err := ask[int64](ctx, m.peers, name, "get_training_step")
	if err != nil {
		return err
	}
	id := fmt.Sprintf("%s/%s", rl.Validator, cmp.Or(measured.ID, fmt.Sprint("step ", step)))
	for _, backend := range m.backends {
		fields := map[string]any{"data": measured.Metrics, "step": step, "id": id}
		if _, err := m.peers.Call(ctx, name, "experiment_logger_post", string(backend), fields); err != nil {
			return fmt.Errorf("%s.experiment_logger_post: %w", name, err)
		}
	}
	return nil
}

// away reports whether an actor was not reached, or its answer was lost: its next process may answer.
func away(err error) bool {
	switch rpcerror.CodeOf(err) {
	case rpcerror.CodeUnknownActor, rpcerror.CodeStale, rpcerror.CodeBusy, rpcerror.CodeStopping, rpcerror.CodeMaybeExecuted,
		rpcerror.CodeUnavailable, rpcerror.CodeActorDead:
		return true
	case rpcerror.CodeApplication, rpcerror.CodeUnknownMethod, rpcerror.CodeBadArguments, rpcerror.CodeEncoding, rpcerror.CodeTooLarge,
		rpcerror.CodeMalformed, rpcerror.CodeVersion, rpcerror.CodeDeadline, rpcerror.CodeCancelled, rpcerror.CodeDenied, rpcerror.CodeInternal:
	}
	return false
}

var (
	_ LoaderStatus  = remoteLoader{}
	_ BatchNotifier = remoteNotifier{}
	_ MetricLogger  = remoteMetrics{}
	_ Copier        = (*actorCopier)(nil)
	_ Copier        = (*httpCopier)(nil)
)
