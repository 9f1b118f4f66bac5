package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/actorrpc/registrytest"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/schema"
)

// programVariable makes of the test's executable a program that hosts an actor.
const programVariable = "FRAY_TEST_ACTOR_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(envMeasured) != "" {
		measured()
	}
	if os.Getenv(envDying) != "" {
		dying()
	}
	if os.Getenv(programVariable) == "" {
		propertytest.Main(m)
		return
	}
	os.Exit(int(Main(context.Background(), os.Stderr, map[string]Factory{
		"Lesson": func(_ context.Context, args json.RawMessage) (any, Options, error) {
			var in struct{ Start int }
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, Options{}, err
			}
			l := newLesson()
			l.count = in.Start
			return l, Options{}, nil
		},
		"Broken": func(context.Context, json.RawMessage) (any, Options, error) {
			return nil, Options{}, errors.New("no weights at /nowhere")
		},
		"Panics": func(context.Context, json.RawMessage) (any, Options, error) { panic("out of luck") },
	})))
}

// program runs this executable as a program that hosts an actor.
func program(t *testing.T, variables ...string) (*exec.Cmd, *lockedText) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append([]string{programVariable + "=1", "HOME=" + t.TempDir()}, variables...)
	text := &lockedText{}
	cmd.Stderr = text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, text
}

type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestMainExits(t *testing.T) {
	tests := []struct {
		name   string
		env    []string
		status int
		want   []string
	}{
		{"no names", []string{"FRAY_ACTOR_CLASS=Lesson"}, 1, []string{`FRAY_ACTOR_NAMES is ""`}},
		{"a class that is not there", []string{"FRAY_ACTOR_CLASS=Leson", `FRAY_ACTOR_NAMES=["a"]`}, 77, []string{`no actor class "Leson"`, "did you mean Lesson?"}},
		{"a factory that fails", []string{"FRAY_ACTOR_CLASS=Broken", `FRAY_ACTOR_NAMES=["a"]`}, 77, []string{"construct Broken: no weights at /nowhere"}},
		{"a factory that panics", []string{"FRAY_ACTOR_CLASS=Panics", `FRAY_ACTOR_NAMES=["a"]`}, 77, []string{"panic: out of luck", "TestMain"}},
		{"arguments that do not fit", []string{"FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["a"]`, `FRAY_ACTOR_ARGS={"Start": "x"}`}, 77, []string{"construct Lesson: json"}},
		{"an address without identity", []string{"FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["a"]`, "FRAY_HOST_ADDRESS=10.0.0.1"}, 1, []string{"without an identity only this machine is served"}},
		{"an identity that is not there", []string{"FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["a"]`, "FRAY_ACTOR_IDENTITY=/nowhere"}, 1, []string{"read the actor identity"}},
		{"options that are none", []string{"FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["a"]`, "FRAY_ACTOR_OPTIONS=x"}, 1, []string{`FRAY_ACTOR_OPTIONS is "x"`}},
		{"a group of no call", []string{"FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["a"]`, `FRAY_ACTOR_OPTIONS={"concurrency_groups":{"io":0}}`}, 77, []string{`register actor "a": concurrency group "io"`}},
		{"a port that is none", []string{"FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["a"]`, "FRAY_PORT_ACTOR=x"}, 1, []string{`FRAY_PORT_ACTOR is "x"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cmd, text := program(t, test.env...)
			err := cmd.Wait()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != test.status {
				t.Errorf("got %v, want status %d", err, test.status)
			}
			for _, want := range test.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("got %s\nwant …%s…", text, want)
				}
			}
		})
	}
}

// TestMainRecordsItsEnd: what the agent reads is the record, not what was printed.
func TestMainRecordsItsEnd(t *testing.T) {
	for _, test := range []struct {
		class, options string
		cause          schema.TerminationCause
		message, trace string
	}{
		{"Leson", "", schema.TerminationActorInvalid, `there is no actor class "Leson"`, ""},
		{"Panics", "", schema.TerminationActorUnmade, "construct Panics: panic: out of luck", "TestMain"},
		{"Lesson", `{"concurrency_groups":{"io":0}}`, schema.TerminationActorInvalid, `register actor "a": concurrency group "io"`, ""},
		{"", "", "", "", ""}, // without names it is no matter of the constructor
	} {
		t.Run(test.class, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "end")
			env := []string{"FRAY_ACTOR_CLASS=" + test.class, "FRAY_TERMINATION_FILE=" + path, "FRAY_ACTOR_OPTIONS=" + test.options}
			if test.class != "" {
				env = append(env, `FRAY_ACTOR_NAMES=["a"]`)
			}
			cmd, _ := program(t, env...)
			_ = cmd.Wait()
			data, err := os.ReadFile(path)
			if test.message == "" {
				if !errors.Is(err, os.ErrNotExist) {
					t.Errorf("it recorded %s, %v; want nothing", data, err)
				}
				return
			}
			var end schema.Termination
			if err := errors.Join(err, json.Unmarshal(data, &end)); err != nil {
				t.Fatal(err)
			}
			if end.Cause != test.cause || !strings.HasPrefix(end.Message, test.message) || !strings.Contains(end.Trace, test.trace) {
				t.Errorf("got %+v, want %q", end, test.message)
			}
		})
	}
}

func TestMainServesUntilSIGTERM(t *testing.T) {
	d := newDirectory(t)
	port := freePort(t)
	cmd, text := program(t, "FRAY_ACTOR_CLASS=Lesson", `FRAY_ACTOR_NAMES=["lesson", "lesson_0"]`, `FRAY_ACTOR_ARGS={"Start": 40}`,
		`FRAY_ACTOR_OPTIONS={"allow_pickle":true,"concurrency_groups":{"io":3},"max_concurrency":2}`, "FRAY_STOP_GRACE=4",
		"FRAY_HOST_ADDRESS=127.0.0.1", fmt.Sprintf("FRAY_PORT_ACTOR=%d", port), "FRAY_CLUSTER_ADDRESS="+d.address, "FRAY_CLUSTER_TOKEN=x")
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	until(t, "it is ready", func() bool {
		client := http.Client{Timeout: time.Second}
		defer client.CloseIdleConnections()
		resp, err := client.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if got := len(d.registered()); got != 2 {
		t.Errorf("got %d names, want two", got)
	}
	s := &Server{address: address}
	c := connect(t, s, "a")
	c.wants(41, "lesson", "increment", 1)
	c.wants(42, "lesson_0", "increment", 1)
	runs := c.begin("lesson", "wait", "x")
	other := connect(t, s, "b")
	other.wants(43, "lesson", "increment", 1) // beside it
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.failed(rpcerror.CodeStopping, runs); !err.Ran {
		t.Errorf("got %+v, want that it ran", err)
	}
	_ = c.closeError()
	c.net.Close()
	other.net.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("got %v, want status 0\n%s", err, text)
	}
	if got := len(d.registered()); got != 0 {
		t.Errorf("got %d names, want none", got)
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := registrytest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Of a replica's tasks the first has its names, and each one of its own: who calls by a
// name reaches the same one every time.
func TestNamesOfTasks(t *testing.T) {
	for _, test := range []struct{ tasks, task, want, problem string }{
		{"", "", "[a a_0]", ""},
		{"1", "0", "[a a_0]", ""},
		{"2", "0", "[a a_0 a_0/0]", ""},
		{"4", "3", "[a_0/3]", ""},
		{"two", "0", "[]", `FRAY_NUM_TASKS is "two": want a number`},
	} {
		environment := map[string]string{envNames: `["a","a_0"]`, envTasks: test.tasks, envTask: test.task}
		names, err := actorNames(func(name string) string { return environment[name] })
		if problem := fmt.Sprint(err); fmt.Sprint(names) != test.want || err != nil && problem != test.problem || err == nil && test.problem != "" {
			t.Errorf("task %s of %s: got %v, %v; want %s, %q", test.task, test.tasks, names, err, test.want, test.problem)
		}
	}
}
