package roles_test

import (
	"testing"
)

// A rollout worker that is gone for good, as one that waits for another host, holds up neither updates nor validations: the run
// comes to its end without it. One that comes back is led to where the run is.
func TestN80_ARunGoesOnWithoutARolloutWorker(t *testing.T) {
	t.Parallel()
	s := newStage(t, document(t, t.TempDir(), map[string]any{"data": map[string]any{
		"type": "mock", "num_samples": 40, "batch_size": 4, "repeat_item": 2, "keep_batch_order": true, "lease_ttl": 1,
	}}))
	leave := s.worker("rollout_worker_2", &rollout{s: s, name: "rollout_worker_2", life: "1"})
	for _, name := range []string{"rollout_worker_0", "rollout_worker_1"} {
		s.worker(name, &rollout{s: s, name: name, life: "1"})
	}
	s.worker("algorithm_processor_0", &processor{s: s})
	s.worker("train_worker_0", &trainer{s: s, save: 2})
	s.worker("inference_service_0", &inference{s: s})
	_, ended := s.serve(goRoles()...)
	s.until("an update", func(m *model) bool { return m.step == 1 })
	leave() // its name stays, and nothing answers
	s.until("the update after the next validation", func(m *model) bool { return m.step == 4 })
	s.worker("rollout_worker_2", &rollout{s: s, name: "rollout_worker_2", life: "2"})
	s.wait(ended)
	s.check(6)
}
