package roles_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// module answers health checks as it is set up.
type module struct{ healthy func() bool }

func (m module) HealthCheck() bool { return m.healthy() }

func tracked(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, document(t, t.TempDir(), nil))
	s.serve("activity_tracker", "data_loader")
	return s
}

// TestN80_LivenessDetectsDeathAndHang, and a module that reports that it is not healthy.
func TestN80_LivenessDetectsDeathAndHang(t *testing.T) {
	s := tracked(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	register := func(name string) { s.call("activity_tracker", "register_module", name) }
	gone := func(limit float64) map[string]any {
		return s.call("activity_tracker", "get_unhealthy_modules", limit).(map[string]any)
	}

	stop := s.worker("lives", module{func() bool { return true }})
	register("lives")
	register("data_loader")
	if alive := s.call("activity_tracker", "check_module_liveness", 30.0); alive != true {
		t.Fatalf("with modules that live: %v, not healthy are %v", alive, gone(30))
	}
	s.worker("fails", module{func() bool { return false }})
	register("fails")
	if bad := gone(30); len(bad) != 1 || bad["fails"] == nil || s.call("activity_tracker", "check_module_liveness", 30.0) != false {
		t.Errorf("not healthy are %v, want the one that reports it", bad)
	}
	stop()
	if bad := gone(0.5); bad["lives"] == nil {
		t.Errorf("not healthy are %v, want the dead one among them", bad)
	}
	s.worker("hangs", module{func() bool { <-release; return true }})
	register("hangs")
	if bad := gone(0.2); bad["hangs"] == nil {
		t.Errorf("not healthy are %v, want the one that hangs among them", bad)
	}
	health := s.call("activity_tracker", "get_error_health_status").(map[string]any)
	if health["status"] != "warning" || health["warning_level_count"].(int64) < 3 {
		t.Errorf("the health is %v, want a warning for each", health)
	}
}

// TestN74_WaitQuiescentOverSockets: False at the timeout, True as soon as the last activity ends.
func TestN74_WaitQuiescentOverSockets(t *testing.T) {
	s := tracked(t)
	token := s.call("activity_tracker", "start", "m", "work", "p1")
	if quiescent := s.call("activity_tracker", "wait_quiescent", 0.01); quiescent != false {
		t.Errorf("during an activity: %v", quiescent)
	}
	answer := make(chan any, 1)
	go func() {
		result, err := s.peers.Call(t.Context(), "activity_tracker", "wait_quiescent", nil)
		if err != nil {
			result = err
		}
		answer <- result
	}()
	s.call("activity_tracker", "end", token)
	select {
	case quiescent := <-answer:
		if quiescent != true {
			t.Errorf("after its end: %v", quiescent)
		}
	case <-time.After(patience):
		t.Error("the end of the activity is not noticed")
	}
}

// TestN89_TheSummaryOverSockets names module, work and age.
func TestN89_TheSummaryOverSockets(t *testing.T) {
	s := tracked(t)
	s.call("activity_tracker", "start", "train_worker_0", "step 7", "p1")
	s.call("activity_tracker", "start", "algorithm_processor_0", "a batch", "p1")
	want := regexp.MustCompile(`^2 under way:\n  train_worker_0: step 7, for [0-9.]+m?s\n  algorithm_processor_0: a batch, for [0-9.]+m?s$`)
	if summary := s.call("activity_tracker", "get_running_status_summary").(string); !want.MatchString(summary) {
		t.Errorf("the summary is %q", summary)
	}
}

// TestN90_RolloutWorkersAreThoseThatWereRegisteredAsOne; a task that is leased counts as their activity.
func TestN90_RolloutWorkersAreThoseThatWereRegisteredAsOne(t *testing.T) {
	s := tracked(t)
	quiet := func(when string, rollouts, all bool) {
		t.Helper()
		if got := s.call("activity_tracker", "is_rollout_worker_quiescent"); got != rollouts {
			t.Errorf("%s rollout workers are quiescent: %v", when, got)
		}
		if got := s.call("activity_tracker", "is_quiescent"); got != all {
			t.Errorf("%s all are quiescent: %v", when, got)
		}
	}
	s.call("activity_tracker", "register_module", "rollout_worker_0", "", true)
	s.call("activity_tracker", "register_module", "train_worker_0", "", false)
	trains := s.call("activity_tracker", "start", "train_worker_0", "step", "p1")
	quiet("during training", true, false)
	rolls := s.call("activity_tracker", "start", "rollout_worker_0", "task", "p1")
	quiet("during a rollout", false, false)
	s.call("activity_tracker", "end", rolls)
	s.call("activity_tracker", "end", trains)
	quiet("at rest", true, true)
	task := s.call("data_loader", "get_next_item", "rollout_worker_0", "p1").(map[string]any)
	quiet("with a leased task", false, true)
	s.call("data_loader", "complete", task["lease"].(map[string]any)["id"], "success")
	quiet("after it", true, true)
}

// TestN92_RecordsOverSockets: callers read the fields of health and of errors as the guide names them.
func TestN92_RecordsOverSockets(t *testing.T) {
	s := tracked(t)
	report := map[string]any{
		"type": "ValueError", "message": "no reward", "traceback": "Traceback …\nValueError: no reward", "details": map[string]any{"task": "0/1/2"},
	}
	id := s.call("activity_tracker", "report_exception", "rollout_worker_1", "rolling out", report)
	s.call("activity_tracker", "report_exception", "validator", "metrics", map[string]any{"message": "few"}, "warning")
	health := s.call("activity_tracker", "get_error_health_status").(map[string]any)
	const message = "1 error in the last 5m0s, the last of rollout_worker_1 during rolling out: no reward"
	for name, want := range map[string]any{
		"status": "error", "message": message, "recent_error_count": int64(2), "error_level_count": int64(1), "warning_level_count": int64(1),
	} {
		if health[name] != want {
			t.Errorf("health has %s %v, want %v", name, health[name], want)
		}
	}
	records := s.call("activity_tracker", "get_errors").([]any)
	if len(records) != 2 {
		t.Fatalf("there are %d errors, want 2", len(records))
	}
	record := records[0].(map[string]any)
	for name, want := range map[string]any{
		"error_id": id, "module_name": "rollout_worker_1", "work_context": "rolling out", "severity": "error", "message": "no reward",
		"exception_type": "ValueError", "exception_traceback": report["traceback"],
	} {
		if record[name] != want {
			t.Errorf("the record has %s %v, want %v", name, record[name], want)
		}
	}
	if at, ok := record["timestamp"].(float64); !ok || time.Since(time.UnixMicro(int64(at*1e6))).Abs() > time.Hour || record["details"].(map[string]any)["task"] != "0/1/2" {
		t.Errorf("the record is %v", record)
	}
	if _, err := s.peers.Call(t.Context(), "activity_tracker", "report_exception", "m", "w", report, "fatal"); err == nil || !strings.Contains(err.Error(), "want info, warning, error") {
		t.Errorf("a severity that there is none of is answered by %v", err)
	}
}

// TestN88_N91_PostsOverSockets: with a step of their own or the run's, in the file that their backend has.
func TestN88_N91_PostsOverSockets(t *testing.T) {
	s := tracked(t)
	s.call("activity_tracker", "set_training_step", 7)
	if step := s.call("activity_tracker", "get_training_step"); step != int64(7) {
		t.Errorf("the training step is %v, want 7", step)
	}
	post := func(fields map[string]any) {
		t.Helper()
		s.call("activity_tracker", "experiment_logger_post", "jsonl", fields)
	}
	post(map[string]any{"data": map[string]any{"loss": 0.5}, "step": 3, "id": "a"})
	post(map[string]any{"data": map[string]any{"loss": 0.5}, "step": 3, "id": "a"})
	post(map[string]any{"title": "done", "content": "all of it"})
	s.call("activity_tracker", "experiment_logger_post", "wandb", map[string]any{"data": map[string]any{}}) // which this run has not
	s.call("activity_tracker", "experiment_logger_flush", 30.0)
	text, err := os.ReadFile(filepath.Join(s.cfg.Out, "metrics", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var records []map[string]any
	for line := range lines(text) {
		var record map[string]any
		if err := json.Unmarshal(line, &record); err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	if len(records) != 2 || records[0]["step"] != 3.0 || records[1]["step"] != 7.0 || records[1]["content"] != "all of it" {
		t.Errorf("the records are %v", records)
	}
	if _, err := s.peers.Call(t.Context(), "activity_tracker", "experiment_logger_post", "mlflow", nil); err == nil || !strings.Contains(err.Error(), "want console, jsonl, tensorboard, wandb") {
		t.Errorf("a backend that there is none of is answered by %v", err)
	}
}
