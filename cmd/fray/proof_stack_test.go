package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// proofPatience is how long anything of a proof may take on a busy machine.
const proofPatience = 5 * time.Minute

// proofStack is a stack that real processes work on. Its directory has the
// configuration and the simulated slices; its state is there too, or in an
// emulated bucket under the directory's name.
type proofStack struct {
	dir    string
	bucket *emulator // nil: the state is in the directory
	env    []string  // besides what every command gets
	// program is fray, "" for the usual one.
	program string
}

func newProofStack(t *testing.T, bucket *emulator) *proofStack {
	t.Helper()
	needsFray(t)
	s := &proofStack{dir: t.TempDir(), bucket: bucket}
	if bucket != nil {
		s.env = bucket.environ()
	}
	t.Cleanup(func() { endProcesses(s.dir) })
	return s
}

func (s *proofStack) prefix() string { return strings.Trim(s.dir, "/") }

func (s *proofStack) write(t *testing.T, config string) {
	t.Helper()
	if s.bucket != nil {
		config = inBucket(s.prefix(), config)
	}
	writeConfig(t, s.dir, config)
}

func (s *proofStack) command(t *testing.T, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), cmp.Or(s.program, fray), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CACHE_HOME="+filepath.Join(s.dir, "cache"), "NO_COLOR=1")
	cmd.Env = append(append(cmd.Env, s.env...), env...)
	return cmd
}

// ending is how a command ended.
type ending struct {
	stdout, stderr string
	code           int // -1: by a signal
}

func (o ending) String() string {
	return fmt.Sprintf("exit code %d\nstdout:\n%s\nstderr:\n%s", o.code, o.stdout, o.stderr)
}

func (s *proofStack) run(t *testing.T, env []string, args ...string) (ending, error) {
	return endingOf(s.command(t, env, args...))
}

// endingOf runs a command; one that does not end says where it stands.
func endingOf(cmd *exec.Cmd) (ending, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = patience // a child may have kept its output
	err := cmd.Start()
	if err == nil {
		defer endStuck(cmd)()
		err = cmd.Wait()
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return ending{}, fmt.Errorf("run %v: %w", cmd.Args, err)
	}
	return ending{out.String(), errs.String(), cmd.ProcessState.ExitCode()}, nil
}

// must runs a command that has to end well.
func (s *proofStack) must(t *testing.T, args ...string) ending {
	t.Helper()
	got, err := s.run(t, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	if got.code != 0 {
		t.Fatalf("fray %s: %v", strings.Join(args, " "), got)
	}
	return got
}

// store is the stack's store as another client sees it.
func (s *proofStack) store(t *testing.T) (store.Store, error) {
	if s.bucket == nil {
		return store.OpenDir(filepath.Join(s.dir, ".fray"))
	}
	return bucket.Open(t.Context(), bucket.Config{
		Bucket: emulatedBucket, Prefix: s.prefix(), Endpoint: s.bucket.URL + "/storage/v1/",
		WriteInterval: time.Millisecond, HTTPClient: &http.Client{},
	})
}

// documents are all versions of the state, oldest first.
func (s *proofStack) documents(t *testing.T) []state.Document {
	t.Helper()
	st, err := s.store(t)
	if err != nil {
		t.Fatal(err)
	}
	versioned, ok := store.AsVersioned(st)
	if !ok {
		t.Fatalf("%s keeps no versions", st.Location())
	}
	found, err := versioned.Versions(t.Context(), store.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	var documents []state.Document
	for _, version := range found {
		object, err := versioned.GetVersion(t.Context(), store.StateKey, version.Generation)
		if err != nil {
			t.Fatal(err)
		}
		document, err := state.Decode(object.Data)
		if err != nil {
			t.Fatal(err)
		}
		documents = append([]state.Document{document}, documents...)
	}
	return documents
}

// lines are those of a file in the stack's directory, none if it is not there.
func (s *proofStack) lines(name string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' }), nil
}

// within looks until what it sees is right, and returns the last complaint.
func within(patience time.Duration, look func() error) error {
	deadline := time.Now().Add(patience)
	for {
		err := look()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(25 * time.Millisecond)
	}
}
