package weights_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/weights"
)

const tag = rl.DefaultModel

func machine(t *testing.T, cfg weights.Config) *weights.Machine {
	t.Helper()
	m, err := weights.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func verbs(actions []weights.Action) []weights.Verb {
	var all []weights.Verb
	for _, action := range actions {
		all = append(all, action.Verb)
	}
	return all
}

func wantVerbs(t *testing.T, when string, got []weights.Action, want ...weights.Verb) {
	t.Helper()
	if !slices.Equal(verbs(got), want) {
		t.Fatalf("%s: got %v, want %v", when, got, want)
	}
}

func wantStatus(t *testing.T, when string, m *weights.Machine, want rl.RolloutStatus) {
	t.Helper()
	if got := m.RolloutStatus(tag); got != want {
		t.Fatalf("%s: rollouts %s, want %s", when, got, want)
	}
}

func TestN60_SyncBlocksFromBatchReadyToCopied(t *testing.T) {
	m := machine(t, weights.Config{})
	wantStatus(t, "at the start", m, rl.Continue)
	wantVerbs(t, "batch ready", m.BatchReady(tag, "b1"), weights.LockPools)
	wantStatus(t, "after the batch", m, rl.Block)
	wantVerbs(t, "update", m.Updated(tag, "train_worker_0", ""), weights.Copy)
	wantStatus(t, "during the copy", m, rl.Block)
	wantVerbs(t, "copied", m.Copied(tag, 1), weights.UnlockPools, weights.UnlockLoader)
	wantStatus(t, "after the copy", m, rl.Continue)
}

func TestN61_BatchAsyncLocksBeyondTheThreshold(t *testing.T) {
	for threshold := range int64(4) {
		m := machine(t, weights.Config{Mode: rl.BatchAsync, StalenessThreshold: threshold})
		for train := range int64(12) {
			model := m.Of(tag)
			locks := slices.Contains(verbs(m.BatchReady(tag, "")), weights.LockPools)
			if want := train+1-model.Rollout > threshold; locks != want {
				t.Errorf("threshold %d, train %d, rollout %d: locks %v, want %v", threshold, train, model.Rollout, locks, want)
			}
			for _, action := range m.Updated(tag, "w", "") {
				m.Copied(tag, action.Version)
			}
		}
	}
}

func TestN62_FullyAsyncNeverLocksAndSyncs(t *testing.T) {
	m := machine(t, weights.Config{Mode: rl.FullyAsync})
	wantVerbs(t, "batch ready", m.BatchReady(tag, "b1"), weights.UnlockLoader)
	wantVerbs(t, "update", m.Updated(tag, "w", ""), weights.Copy)
	wantStatus(t, "during the copy", m, rl.Continue)
	wantVerbs(t, "a batch meanwhile", m.BatchReady(tag, "b2"), weights.UnlockLoader)
	wantVerbs(t, "an update meanwhile", m.Updated(tag, "w", ""))
	again := m.Copied(tag, 1)
	wantVerbs(t, "copied", again, weights.Copy)
	if again[0].Version != 2 {
		t.Errorf("copies version %d, want the newest, 2", again[0].Version)
	}
	m.Copied(tag, 2)
	if got := m.Of(tag); got.Rollout != 2 || got.Train != 2 {
		t.Errorf("got %+v, want version 2 on both sides", got)
	}
}

func TestN63_PhasesInOrder(t *testing.T) {
	m := machine(t, weights.Config{})
	phases := []weights.Phase{m.Of(tag).Phase}
	note := func([]weights.Action) { phases = append(phases, m.Of(tag).Phase) }
	note(m.BatchReady(tag, ""))
	note(m.Updated(tag, "w", ""))
	note(m.Copied(tag, 1))
	want := []weights.Phase{weights.Running, weights.NeedSync, weights.Syncing, weights.Running}
	if diff := cmp.Diff(want, phases); diff != "" {
		t.Error(diff)
	}
}

func TestN64_VersionsOnlyGrow(t *testing.T) {
	m := machine(t, weights.Config{})
	for version := int64(1); version <= 3; version++ {
		m.BatchReady(tag, "")
		m.Updated(tag, "w", "")
		m.Copied(tag, version-1) // a late answer of a copy before
		if got := m.Of(tag); got.Train != version || got.Rollout != version-1 {
			t.Fatalf("before the copy: %+v", got)
		}
		m.Copied(tag, version)
		if got := m.Of(tag); got.Rollout != got.Train {
			t.Fatalf("after the copy rollouts have %d, want %d", got.Rollout, got.Train)
		}
	}
}

func TestN65_AFailedSyncUnlocksNothing(t *testing.T) {
	m := machine(t, weights.Config{})
	m.BatchReady(tag, "")
	m.Updated(tag, "w", "")
	wantVerbs(t, "failed", m.CopyFailed(tag, 1, "inference_service_1: gone"))
	wantStatus(t, "after the failure", m, rl.Block)
	if got := m.Of(tag); got.Rollout != 0 || !got.Locked || m.Failed()[tag] == "" {
		t.Fatalf("got %+v, want version 0, locked, with the reason", got)
	}
	wantVerbs(t, "nothing to abandon", m.Abandon(tag))
	wantStatus(t, "still", m, rl.Block)
	wantVerbs(t, "again", m.Sync(tag), weights.Copy)
	wantVerbs(t, "copied at last", m.Copied(tag, 1), weights.UnlockPools, weights.UnlockLoader)
}

func TestN67_ValidationKeepsTheLocks(t *testing.T) {
	m := machine(t, weights.Config{ValidateFreq: 2})
	for version := int64(1); version <= 4; version++ {
		m.BatchReady(tag, "")
		m.Updated(tag, "w", "")
		after := m.Copied(tag, version)
		if version%2 != 0 {
			wantVerbs(t, "no validation is due", after, weights.UnlockPools, weights.UnlockLoader)
			continue
		}
		wantVerbs(t, "a validation is due", after)
		wantStatus(t, "rollouts of the validation", m, rl.Continue)
		if got := m.Waiting(); len(got) != 1 || !m.Of(tag).Locked {
			t.Fatalf("version %d: waiting %v, locked %v", version, got, m.Of(tag).Locked)
		}
		wantVerbs(t, "the end of the validation", m.Validated(tag), weights.UnlockPools, weights.UnlockLoader)
		wantVerbs(t, "its end again", m.Validated(tag))
	}
}

// With several train workers a version is there once each has its part.
func TestN66_AVersionNeedsAllWorkers(t *testing.T) {
	m := machine(t, weights.Config{TrainWorkers: 2})
	wantVerbs(t, "a batch of the first", m.BatchReady(tag, ""), weights.UnlockLoader)
	wantVerbs(t, "a batch of each", m.BatchReady(tag, ""), weights.LockPools)
	wantVerbs(t, "one", m.Updated(tag, "train_worker_0", ""))
	wantVerbs(t, "the same again", m.Updated(tag, "train_worker_0", ""))
	wantVerbs(t, "the other", m.Updated(tag, "train_worker_1", ""), weights.Copy)
}

// With several train workers the batches that were given and not trained on stay bounded, whichever of them trains.
func TestN61_SeveralTrainWorkersKeepTheBound(t *testing.T) {
	const threshold, workers = 2, 3
	m := machine(t, weights.Config{Mode: rl.BatchAsync, StalenessThreshold: threshold, TrainWorkers: workers})
	update := 0
	for batch := range 60 {
		if m.RolloutStatus(tag) == rl.Block {
			t.Fatalf("batch %d: rollouts are blocked though all that was given is trained on", batch)
		}
		m.BatchReady(tag, fmt.Sprint(batch))
		update++
		for _, action := range m.Updated(tag, fmt.Sprintf("train_worker_%d", update%2), fmt.Sprint(update)) { // the third is slow
			if action.Verb == weights.Copy {
				m.Copied(tag, action.Version)
			}
		}
		if model := m.Of(tag); model.Outstanding >= workers || model.Train != int64(update/workers) {
			t.Fatalf("after %d updates %+v", update, model)
		}
	}
}

func TestN34_ABatchCountsOnce(t *testing.T) {
	m := machine(t, weights.Config{})
	m.BatchReady(tag, "b1")
	m.BatchReady(tag, "b1") // by the pool's next process
	m.Updated(tag, "w", "u1")
	wantVerbs(t, "the update again", m.Updated(tag, "w", "u1"))
	m.Copied(tag, 1)
	wantStatus(t, "after the one update", m, rl.Continue)
}

func TestN59_TheFirstSyncUnlocksNoFurtherBatch(t *testing.T) {
	m := machine(t, weights.Config{})
	wantVerbs(t, "first sync", m.Sync(tag), weights.LockPools, weights.Copy)
	wantStatus(t, "before the first weights", m, rl.Block)
	wantVerbs(t, "copied", m.Copied(tag, 0), weights.UnlockPools)
}

func TestN58_BeginSetsBothVersions(t *testing.T) {
	m := machine(t, weights.Config{})
	m.BatchReady(tag, "")
	m.Begin(tag, 20)
	m.Sync(tag)
	wantVerbs(t, "copied", m.Copied(tag, 20), weights.UnlockPools)
	if got := m.Of(tag); got.Train != 20 || got.Rollout != 20 || got.Outstanding != 0 {
		t.Errorf("got %+v, want version 20 on both sides and nothing outstanding", got)
	}
}

// A machine that is restored at any point goes on as the former would have.
func TestRestoreGoesOn(t *testing.T) {
	steps := []func(m *weights.Machine) []weights.Action{
		func(m *weights.Machine) []weights.Action { return m.BatchReady(tag, "b1") },
		func(m *weights.Machine) []weights.Action { return m.Updated(tag, "w", "1") },
		func(m *weights.Machine) []weights.Action { return m.Copied(tag, 1) },
	}
	for crash := range len(steps) + 1 {
		m := machine(t, weights.Config{})
		for _, step := range steps[:crash] {
			step(m)
		}
		text, err := json.Marshal(m.Models())
		if err != nil {
			t.Fatal(err)
		}
		var models map[rl.ModelTag]weights.Model
		if err := json.Unmarshal(text, &models); err != nil {
			t.Fatal(err)
		}
		next := machine(t, weights.Config{})
		again := next.Restore(models)
		if crash == 2 && !slices.Contains(verbs(again), weights.Copy) {
			t.Errorf("the copy that was under way is not made again: %v", again)
		}
		if crash == 3 && !slices.Contains(verbs(again), weights.UnlockLoader) {
			t.Errorf("the loader may still be locked, and is not unlocked: %v", again)
		}
		for _, step := range steps[crash:] {
			step(next)
		}
		if got := next.Of(tag); got.Rollout != 1 || got.Phase != weights.Running || got.Locked {
			t.Errorf("restored after %d steps it ends as %+v", crash, got)
		}
	}
}

// The next batch is trained on with all updates made of the batches before it.
func TestN61_FloorIsThatOfTheNextBatch(t *testing.T) {
	for mode, want := range map[rl.SyncMode][]int64{rl.Sync: {0, 1, 2, 2}, rl.BatchAsync: {0, 0, 1, 1}, rl.FullyAsync: {0, 0, 0, 0}} {
		m := machine(t, weights.Config{Mode: mode, StalenessThreshold: 1})
		got := []int64{m.Floor(tag)}
		m.BatchReady(tag, "b1")
		got = append(got, m.Floor(tag))
		m.BatchReady(tag, "b2")
		got = append(got, m.Floor(tag))
		m.Updated(tag, "w", "")
		if got = append(got, m.Floor(tag)); !slices.Equal(got, want) {
			t.Errorf("%s: floors %v, want %v", mode, got, want)
		}
	}
}

func TestN61_BatchOfOldTrajectoriesIsNotTaken(t *testing.T) {
	m := machine(t, weights.Config{Mode: rl.BatchAsync, StalenessThreshold: 1})
	old, newer := int64(0), int64(1)
	m.BatchReady(tag, "b1")
	if !m.Takes(tag, "b2", &old) {
		t.Error("a batch within the threshold is not taken")
	}
	wantVerbs(t, "the second", m.BatchReady(tag, "b2"), weights.LockPools)
	if m.Takes(tag, "b3", &old) || !m.Takes(tag, "b3", &newer) || !m.Takes(tag, "b3", nil) {
		t.Error("want the third batch to be taken by version 1, or by one that is not known")
	}
	if !m.Takes(tag, "b2", &old) {
		t.Error("a batch that was counted is not taken any more")
	}
	m.Updated(tag, "w", "")
	m.Updated(tag, "w", "")
	unlocked := m.Copied(tag, 1)
	if len(unlocked) == 0 || unlocked[0].Verb != weights.LockPools && unlocked[0].Verb != weights.UnlockPools {
		t.Fatalf("after the copy: %v", unlocked)
	}
	for _, action := range unlocked {
		if action.Verb == weights.UnlockPools && action.Version != m.Floor(tag) {
			t.Errorf("pools are unlocked for version %d, want %d", action.Version, m.Floor(tag))
		}
	}
}

// An inference service whose process is new gets its weights also while the trainer makes newer ones.
func TestSyncWhileTheTrainerWorks(t *testing.T) {
	m := machine(t, weights.Config{})
	m.BatchReady(tag, "b1")
	wantVerbs(t, "sync", m.Sync(tag), weights.Copy)
	wantVerbs(t, "the update meanwhile", m.Updated(tag, "w", "1"))
	wantVerbs(t, "copied", m.Copied(tag, 0), weights.Copy)
	wantVerbs(t, "copied again", m.Copied(tag, 1), weights.UnlockPools, weights.UnlockLoader)
}

// N65: a copy that had failed is made again by the next process: nothing else would unlock.
func TestN65_RestoreTriesAFailedCopyAgain(t *testing.T) {
	m := machine(t, weights.Config{})
	m.BatchReady(tag, "b1")
	m.Updated(tag, "w", "1")
	m.CopyFailed(tag, 1, "a service is gone")
	next := machine(t, weights.Config{})
	wantVerbs(t, "restored", next.Restore(m.Models()), weights.LockPools, weights.Copy)
	wantVerbs(t, "copied", next.Copied(tag, 1), weights.UnlockPools, weights.UnlockLoader)
}
