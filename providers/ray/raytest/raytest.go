package raytest

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed cluster.py
var program string

// Node is one node of a cluster, in Ray's terms.
type Node struct {
	CPUs      int                `json:"num_cpus"`
	GPUs      int                `json:"num_gpus,omitempty"`
	Resources map[string]float64 `json:"resources,omitempty"`
	Labels    map[string]string  `json:"labels,omitempty"`
}

// Cluster is a real Ray cluster of several nodes on this machine, which asks for a token.
type Cluster struct {
	t       *testing.T
	URL     string // of its dashboard
	Token   string // the file with its token
	Temp    string // what its nodes keep is below it
	in      io.WriteCloser
	out     *bufio.Scanner
	command *exec.Cmd
}

// Start starts a cluster by a Python interpreter, the head without resources first.
func Start(t *testing.T, python string, nodes ...Node) *Cluster {
	t.Helper()
	temp, err := shortDir()
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, Temp: temp, Token: filepath.Join(temp, "token")}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	if err := os.WriteFile(c.Token, []byte("the-token-of-this-cluster-"+strings.Repeat("x", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(map[string]any{
		"dashboard_port": freePort(t), "nodes": append([]Node{{}}, nodes...),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.command = exec.Command(python, "-c", program, string(order))
	c.command.Env = append(withoutRay(os.Environ()),
		"RAY_AUTH_MODE=token", "RAY_AUTH_TOKEN_PATH="+c.Token, "RAY_USAGE_STATS_ENABLED=0", "RAY_memory_monitor_refresh_ms=0",
		"RAY_agent_register_timeout_ms=300000", "RAY_gcs_server_port_wait_time_s=300", "RAY_raylet_start_wait_time_s=300", // on a busy machine
		"RAY_worker_niceness=0", // as Ray's 15 starves what runs there on a busy machine
		"PYTHONPATH="+pythonTests(t), "TMPDIR="+temp, "PATH="+filepath.Dir(python)+":"+os.Getenv("PATH"))
	log, err := os.Create(filepath.Join(temp, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.command.Stderr = log
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.in, err = c.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewScanner(out)
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.stop)
	c.URL = c.answer("ready ")
	for tries := 0; c.Post(t, "/api/jobs/", `{"entrypoint": "true"}`) != http.StatusOK; tries++ { // its agents take submissions later
		if tries == 10 {
			t.Fatalf("the cluster takes no submissions:\n%s", c.log())
		}
	}
	return c
}

// pythonTests is the directory of the Python tests, whose clusters start their nodes in the same way.
func pythonTests(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd() // of the package that is tested, below the module's root
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "python", "tests")
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
}

func (c *Cluster) stop() {
	_ = c.in.Close()
	if err := c.command.Wait(); err != nil {
		c.t.Logf("the cluster ended with %v:\n%s", err, c.log())
	}
}

func (c *Cluster) log() string {
	data, err := os.ReadFile(filepath.Join(c.Temp, "log"))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// answer waits for a line of the cluster's with a beginning, and returns the rest.
func (c *Cluster) answer(begin string) string {
	c.t.Helper()
	for c.out.Scan() {
		if rest, is := strings.CutPrefix(c.out.Text(), begin); is {
			return rest
		}
	}
	c.t.Fatalf("the cluster ended without %q:\n%s", begin, c.log())
	return ""
}

// Kill kills a node with all its processes; 0 is the head.
func (c *Cluster) Kill(node int) {
	c.t.Helper()
	fmt.Fprintf(c.in, "kill %d\n", node)
	c.answer("killed")
}

func withoutRay(env []string) []string {
	var kept []string
	for _, entry := range env {
		if !strings.HasPrefix(entry, "RAY_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Post makes a call of Ray's dashboard and returns its status, 0 where it does not answer in time.
func (c *Cluster) Post(t *testing.T, path, body string) int {
	t.Helper()
	token, err := os.ReadFile(c.Token)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.JoinPath(c.URL, path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(at, "/")+"/", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := http.DefaultClient.Do(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}

// shortDir is a directory with a short name: Ray's sockets are below it, whose paths are bounded.
func shortDir() (string, error) { return os.MkdirTemp("/tmp", "fr") }
