package roles

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/rl"
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

func (m remoteMetrics) LogMetrics(ctx context.Context, metrics map[string]float64) error {
	name := string(rl.ActivityTracker)
	step, err := ask[int64](ctx, m.peers, name, "get_training_step")
	if err != nil {
		return err
	}
	for _, backend := range m.backends {
		fields := map[string]any{"data": metrics, "step": step, "id": fmt.Sprintf("%s/%d", rl.Validator, step)}
		if _, err := m.peers.Call(ctx, name, "experiment_logger_post", string(backend), fields); err != nil {
			return fmt.Errorf("%s.experiment_logger_post: %w", name, err)
		}
	}
	return nil
}

var (
	_ LoaderStatus  = remoteLoader{}
	_ BatchNotifier = remoteNotifier{}
	_ MetricLogger  = remoteMetrics{}
	_ Copier        = (*actorCopier)(nil)
	_ Copier        = (*httpCopier)(nil)
)
