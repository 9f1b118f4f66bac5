package roles

import (
	"cmp"
	"context"
	"fmt"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/validation"
	"github.com/fray-ml/fray/sleep"
)

// remoteLoader reads a loader's status, and has it give tasks again.
type remoteLoader struct {
	peers peer.Peers
	name  rl.Role
}

func (l remoteLoader) Status(ctx context.Context) (rl.LoaderStatus, error) {
	return peer.Ask[rl.LoaderStatus](ctx, l.peers, string(l.name), "status")
}

func (l remoteLoader) WaitQuiet(ctx context.Context, seconds float64) (rl.LoaderStatus, error) {
	return peer.Ask[rl.LoaderStatus](ctx, l.peers, string(l.name), "wait_quiet", seconds)
}

func (l remoteLoader) RollOutAgain(ctx context.Context, pool string, epoch int, tasks []rl.TaskAgain) ([]string, error) {
	return peer.Ask[[]string](ctx, l.peers, string(l.name), "roll_out_again", pool, epoch, tasks)
}

// remoteNotifier reports batches to the weight sync controller.
type remoteNotifier struct{ peers peer.Peers }

func (n remoteNotifier) BatchReady(ctx context.Context, tag rl.ModelTag, batchID string, oldest *int64) (rl.BatchVerdict, error) {
	verdict, err := peer.Ask[*rl.BatchVerdict](ctx, n.peers, string(rl.WeightSyncController), "trajectory_pool_notify_batch_ready", tag, batchID, oldest)
	if err != nil {
		return rl.BatchVerdict{}, err
	}
	if verdict == nil { // of a class of the user's, which bounds nothing
		return rl.BatchVerdict{Counted: true}, nil
	}
	return *verdict, nil
}

// remoteMetrics has metrics logged by the activity tracker, at its step.
type remoteMetrics struct {
	peers    peer.Peers
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
	step, err := peer.Ask[int64](ctx, m.peers, name, "get_training_step")
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
	_ TaskReturner  = remoteLoader{}
	_ BatchNotifier = remoteNotifier{}
	_ MetricLogger  = remoteMetrics{}
	_ Copier        = (*actorCopier)(nil)
	_ Copier        = (*httpCopier)(nil)
)
