package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// rekeyConfig is a stack with secrets wherever a state has some: in a job that runs,
// in one that ended, in what triggers another one, and in an output.
const rekeyConfig = `
%[2]s
job "one" {
  command = ["sh", "-c", "echo one >> %[1]s/starts; exec sleep 1000"]
  environment {
    env = { WORD = sensitive("first word"), URL = "http://user:${sensitive("first word")}@host" }
  }
}
job "ended" {
  command = ["sh", "-c", "echo ended >> %[1]s/starts", sensitive("second word")]
}
job "triggered" {
  command    = ["sh", "-c", "echo triggered >> %[1]s/starts; exec sleep 1000"]
  depends_on = [job.ended]
  lifecycle {
    replace_triggered_by = [job.one]
  }
}
output "word" {
  value     = sensitive("third word")
  sensitive = true
}
`

// TestRekeyCrashes kills `fray state rekey` at every point of the store's where it
// can die. Then nothing has changed for a plan, and rekey again, or the next apply,
// finishes it: no former key is left, what was sealed opens, and nothing restarts.
func TestRekeyCrashes(t *testing.T) {
	needsFray(t)
	type kind struct {
		name   string
		config func(t *testing.T) string
		bucket bool
	}
	kinds := []kind{{name: "key.json", config: func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "kms")
		if err := keyring.CreateKeyFile(path); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("fray {\n  encryption {\n    kms_key = \"file://%s\"\n  }\n}\n", path)
	}}}
	if *faultsAll {
		plain := func(*testing.T) string { return "" }
		kinds = append(kinds, kind{"secret.key", plain, false}, kind{"bucket", plain, true})
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var bucket *emulator
			if kind.bucket {
				bucket = newEmulator(t)
			}
			s := newProofStack(t, bucket)
			s.program = withCrashPoints(t)
			s.write(t, fmt.Sprintf(rekeyConfig, s.dir, kind.config(t)))
			s.must(t, "apply", "--auto-approve", crashPatience)
			log := filepath.Join(s.dir, "points.log")
			got, err := s.run(t, []string{"FRAY_TEST_CRASH_LOG=" + log}, "state", "rekey")
			if err != nil || got.code != 0 {
				t.Fatalf("without a crash: %v, %v", got, err)
			}
			points, err := s.lines("points.log")
			if err != nil {
				t.Fatal(err)
			}
			if err := rekeyed(t, s); err != nil {
				t.Fatalf("without a crash: %v", err)
			}
			killed := 0
			for i, point := range points {
				// After a write the world is the same as before the next one.
				if !strings.Contains(point, " before ") && i != len(points)-1 {
					continue
				}
				finish := [][]string{{"state", "rekey"}, {"apply", "--auto-approve"}}[i%2]
				err := crashRekey(t, s, i+1, finish)
				if errors.Is(err, errNotReached) { // a run may write less often: the lease, old authorities
					continue
				}
				killed++
				if err != nil {
					t.Errorf("killed at point %s, then %v: %v", point, finish, err)
				}
			}
			if killed < len(points)/4 {
				t.Errorf("killed at %d points of %d", killed, len(points))
			}
		})
	}
}

var errNotReached = errors.New("the command ended before that point")

// crashRekey kills a rekey at a point and lets a command finish it.
func crashRekey(t *testing.T, s *proofStack, at int, finish []string) error {
	before, err := currentKey(t, s)
	if err != nil {
		return err
	}
	got, err := s.run(t, []string{fmt.Sprintf("FRAY_TEST_CRASH_AT=%d", at)}, "state", "rekey")
	if err == nil && got.code == 0 {
		return errNotReached
	}
	if err != nil || got.code != -1 {
		return fmt.Errorf("it was not killed: %v, %w", got, err)
	}
	if got, err := s.run(t, nil, "plan", "--detailed-exitcode"); err != nil || got.code != 0 {
		return fmt.Errorf("the plan between is not empty: %v, %w", got, err)
	}
	if got, err := s.run(t, nil, finish...); err != nil || got.code != 0 {
		return fmt.Errorf("it is not finished: %v, %w", got, err)
	}
	after, err := currentKey(t, s)
	if err != nil {
		return err
	}
	if finish[0] == "state" && after == before {
		return errors.New("the key is that of before")
	}
	return rekeyed(t, s)
}

// currentKey is the file or object of the key as it is written.
func currentKey(t *testing.T, s *proofStack) (string, error) {
	if data, err := os.ReadFile(filepath.Join(s.dir, ".fray", "secret.key")); err == nil {
		return string(data), nil
	}
	st, err := s.store(t)
	if err != nil {
		return "", err
	}
	object, err := st.Get(t.Context(), keyring.ObjectKey)
	return string(object.Data), err
}

// keyOf is what the current key makes.
func keyOf(t *testing.T, s *proofStack) (*state.Key, error) {
	text, err := currentKey(t, s)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(text, "{") {
		return store.LoadKey(filepath.Join(s.dir, ".fray", "secret.key"))
	}
	ring, err := keyring.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	secret, err := ring.Open(t.Context(), keyring.Unlock{})
	if err != nil {
		return nil, err
	}
	return state.NewKey(secret)
}

// rekeyed holds that one key is left, that it opens everything, and that nothing is
// left to do and was started anew.
func rekeyed(t *testing.T, s *proofStack) error {
	key, err := currentKey(t, s)
	if err != nil {
		return err
	}
	if strings.Contains(key, "former") {
		return errors.New("a former key is left")
	}
	if got, err := s.run(t, nil, "plan", "--detailed-exitcode"); err != nil || got.code != 0 {
		return fmt.Errorf("the plan is not empty: %v, %w", got, err)
	}
	if got, err := s.run(t, nil, "output", "--raw", "word"); err != nil || strings.TrimSpace(got.stdout) != "third word" {
		return fmt.Errorf("the output is not opened: %v, %w", got, err)
	}
	starts, err := s.lines("starts")
	if err != nil {
		return err
	}
	if len(starts) != 3 {
		return fmt.Errorf("started: %v, want each job once", starts)
	}
	return sealedByCurrent(t, s)
}

// sealedByCurrent holds that the current key alone opens what assignments hold: the
// state was opened by the commands before.
func sealedByCurrent(t *testing.T, s *proofStack) error {
	key, err := keyOf(t, s)
	if err != nil {
		return err
	}
	st, err := s.store(t)
	if err != nil {
		return err
	}
	objects, err := st.List(t.Context(), store.AssignPrefix)
	if err != nil {
		return err
	}
	opened := 0
	for _, o := range objects {
		object, err := st.Get(t.Context(), o.Key)
		if err != nil {
			return err
		}
		a, err := store.DecodeAssignment(object.Data)
		if err != nil {
			return err
		}
		if a.Run == nil {
			continue
		}
		for _, text := range a.Run.Spec.Secrets() {
			if _, err := text.Reveal(key); err != nil {
				return fmt.Errorf("%s: %w", o.Key, err)
			}
			opened++
		}
	}
	if opened == 0 {
		return errors.New("nothing that is assigned is sealed")
	}
	return nil
}
