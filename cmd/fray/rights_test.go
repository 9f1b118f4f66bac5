package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	clusterkeys "github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/keyring"
	"github.com/fray-ml/fray/state/store"
)

// rightsTable are the rows of the table in the guide: what, and for each column
// whether one may.
func rightsTable(t *testing.T) (columns []string, rows map[string]map[string]bool) {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/state.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "## Who may do what\n")
	if !ok {
		t.Fatal("docs/guides/state.md has no section \"Who may do what\"")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	rows = map[string]map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^\| (.+) \|$`).FindAllStringSubmatch(section, -1) {
		cells := strings.Split(match[1], " | ")
		if columns == nil {
			columns = cells[1:]
			continue
		}
		if len(cells) != len(columns)+1 {
			t.Fatalf("the row %q has %d cells, want %d", match[0], len(cells), len(columns)+1)
		}
		row := map[string]bool{}
		for i, cell := range cells[1:] {
			if cell != "yes" && cell != "no" {
				t.Fatalf("%s of %s is %q, want yes or no", cells[0], columns[i], cell)
			}
			row[columns[i]] = cell == "yes"
		}
		rows[cells[0]] = row
	}
	return columns, rows
}

// rights are a stack in a bucket with two jobs, each in a namespace of its own, and an
// encrypted one beside it.
type rights struct {
	*clusterProof
	sealed   *proofStack
	identity string   // file of the recipient of the encrypted one
	reader   []string // environment of who may read only
	conns    map[string]*grpc.ClientConn
	ids      map[string]string // of jobs, by name
	// identities are the files of tasks, by their job's name.
	identities map[string]string
}

const rightsConfig = `
job "one" {
  command = ["sh", "-c", "echo out; exec sleep 1000"]
}
job "two" {
  command = ["sleep", "1000"]
}
job "spare" {
  command = ["sleep", "1000"]
}
`

func newRights(t *testing.T) *rights {
	t.Helper()
	bucket := newEmulator(t)
	stack := newProofStack(t, bucket)
	r := &rights{clusterProof: &clusterProof{proofStack: stack, notes: t.TempDir()}, conns: map[string]*grpc.ClientConn{}, ids: map[string]string{}, identities: map[string]string{}}
	r.reader = bucket.readers(t)
	t.Cleanup(func() { r.explain(t) })
	r.write(t, rightsConfig)
	r.must(t, "apply", "--auto-approve")
	r.watch(t)
	r.awaitLeader(t, 0)

	recipient, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	r.identity = filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(r.identity, []byte(recipient.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.sealed = newProofStack(t, bucket)
	r.sealed.write(t, "output \"x\" {\n  value = \"y\"\n}\n")
	config := inBucket(r.sealed.prefix(), "output \"x\" {\n  value = \"y\"\n}\n")
	config = strings.Replace(config, "fray {\n", fmt.Sprintf("fray {\n  encryption {\n    recipients = [%q]\n  }\n", recipient.Recipient().String()), 1)
	writeConfig(t, r.sealed.dir, config)
	if got, err := r.sealed.run(t, []string{"FRAY_AGE_IDENTITY=" + r.identity}, "apply", "--auto-approve"); err != nil || got.code != 0 {
		t.Fatalf("apply of the encrypted stack: %v, %v", got, err)
	}
	doc := r.document(t)
	for _, name := range []string{"one", "two", "spare"} {
		r.ids[name] = doc.Jobs[schema.Address{Kind: schema.KindJob, Name: name}].ID
	}
	for _, name := range []string{"one", "two"} {
		r.identities[name] = r.in(t, name, `cat "$FRAY_ACTOR_IDENTITY"`)
	}
	r.conns["task"], r.conns["task of another namespace"] = r.as(t, "one"), r.as(t, "two")
	return r
}

// in is a variable's value in a task.
func (r *rights) in(t *testing.T, job, script string) string {
	t.Helper()
	return strings.TrimSpace(r.must(t, "exec", "job."+job, "--", "sh", "-c", script).stdout)
}

// as connects to the controller with a task's token.
func (r *rights) as(t *testing.T, job string) *grpc.ClientConn {
	t.Helper()
	token := r.in(t, job, `echo "$FRAY_CLUSTER_TOKEN"`)
	st, err := r.store(t)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := store.ReadLease(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dial.Open(lease.ControllerAddress, lease.ControllerFingerprint, func(context.Context) (string, error) { return token, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// environment is what a person's commands get.
func (r *rights) environment(column string) []string {
	switch column {
	case "reader":
		return r.reader
	case "recipient":
		return append(slices.Clone(r.reader), "FRAY_AGE_IDENTITY="+r.identity)
	}
	return nil
}

// command runs fray as a person; an error is that it was refused.
func (r *rights) command(t *testing.T, of *proofStack, column string, args ...string) error {
	got, err := of.run(t, r.environment(column), args...)
	if err == nil && got.code != 0 {
		err = fmt.Errorf("fray %s: %v", strings.Join(args, " "), got)
	}
	return err
}

// seen is the stack's store as a person sees it.
func (r *rights) seen(t *testing.T, column string) store.Store {
	t.Helper()
	endpoint := r.bucket.URL
	for _, entry := range r.environment(column) {
		if host, ok := strings.CutPrefix(entry, "STORAGE_EMULATOR_HOST="); ok {
			endpoint = "http://" + host
		}
	}
	st, err := bucket.Open(t.Context(), bucket.Config{
		Bucket: emulatedBucket, Prefix: r.prefix(), Endpoint: endpoint + "/storage/v1/", WriteInterval: time.Millisecond, HTTPClient: &http.Client{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// right is how a person and a task try something.
type right struct {
	person func(t *testing.T, r *rights, column string) error
	task   func(ctx context.Context, r *rights, conn *grpc.ClientConn, column string) error
}

// listsOthers asks for what is not the caller's: all that a token gives of the state is
// the jobs of its namespace.
func listsOthers(ctx context.Context, _ *rights, conn *grpc.ClientConn, _ string) error {
	_, err := clusterapi.NewClusterClient(conn).ListJobs(ctx, &clusterapi.ListJobsRequest{Namespace: "spare"})
	return err
}

func administers(ctx context.Context, _ *rights, conn *grpc.ClientConn, _ string) error {
	_, err := clusterapi.NewAdminClient(conn).Resume(ctx, &clusterapi.ResumeRequest{})
	return err
}

func rightsTried() map[string]right {
	return map[string]right{
		"read the state": {func(t *testing.T, r *rights, column string) error {
			return r.command(t, r.proofStack, column, "state", "pull")
		}, listsOthers},
		"read the state, encrypted": {func(t *testing.T, r *rights, column string) error {
			return r.command(t, r.sealed, column, "state", "pull")
		}, listsOthers},
		"open sensitive values": {func(t *testing.T, r *rights, column string) error {
			object, err := r.seen(t, column).Get(t.Context(), keyring.ObjectKey)
			if err != nil {
				return err
			}
			ring, err := keyring.Parse(object.Data)
			if err == nil {
				_, err = ring.Open(t.Context(), keyring.Unlock{})
			}
			return err
		}, listsOthers},
		"read logs": {func(t *testing.T, r *rights, column string) error {
			return r.command(t, r.proofStack, column, "logs", "job.one")
		}, func(ctx context.Context, r *rights, conn *grpc.ClientConn, _ string) error {
			stream, err := clusterapi.NewClusterClient(conn).Monitor(ctx, &clusterapi.MonitorRequest{JobId: r.ids["one"]})
			if err == nil {
				_, err = stream.Recv()
			}
			return err
		}},
		"run commands on hosts": {func(t *testing.T, r *rights, column string) error {
			return r.command(t, r.proofStack, column, "exec", "job.one", "--", "true")
		}, func(ctx context.Context, r *rights, conn *grpc.ClientConn, _ string) error {
			stream, err := clusterapi.NewClusterClient(conn).Exec(ctx)
			if err != nil {
				return err
			}
			_ = stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Start{Start: &clusterapi.ExecStart{JobId: r.ids["one"], Command: []string{"true"}}}})
			_, err = stream.Recv()
			return err
		}},
		"launch jobs": {func(t *testing.T, r *rights, column string) error {
			return r.command(t, r.proofStack, column, "run", "--", "true")
		}, func(ctx context.Context, r *rights, conn *grpc.ClientConn, column string) error {
			_, err := clusterapi.NewClusterClient(conn).Launch(ctx, &clusterapi.LaunchRequest{RequestId: "launch-" + column, Request: child("a")})
			return err
		}},
		"end jobs": {func(t *testing.T, r *rights, column string) error {
			return r.command(t, r.proofStack, column, "stop", "job.spare")
		}, func(ctx context.Context, r *rights, conn *grpc.ClientConn, _ string) error {
			launched, err := clusterapi.NewClusterClient(r.conns["task"]).Launch(ctx, &clusterapi.LaunchRequest{RequestId: "end", Request: child("b")})
			if err == nil {
				_, err = clusterapi.NewClusterClient(conn).Terminate(ctx, &clusterapi.TerminateRequest{JobId: launched.GetJobId()})
			}
			return err
		}},
		"apply plans, pause, resume": {func(t *testing.T, r *rights, column string) error {
			if err := r.command(t, r.proofStack, column, "pause"); err != nil {
				return err
			}
			return r.command(t, r.proofStack, column, "resume")
		}, administers},
		"publish keys": {func(t *testing.T, r *rights, column string) error {
			_, err := clusterkeys.NewCommand(r.seen(t, column), "abc", "ann").Token(t.Context(), time.Now())
			return err
		}, administers},
		"call actors": {func(t *testing.T, r *rights, column string) error {
			doc := r.document(t)
			_, err := clusterkeys.Join(t.Context(), r.seen(t, column), doc.Stack(), "ann", time.Now())
			return err
		}, callsActors},
	}
}

// child is a job in namespace one.
func child(name string) *clusterapi.JobRequest {
	return &clusterapi.JobRequest{
		Name: name, Namespace: "one",
		Entrypoint: &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Command{Command: &clusterapi.Command{Words: []string{"sleep", "1000"}}}},
	}
}

// callsActors shakes hands with a server of job.one with the identity of a task.
func callsActors(ctx context.Context, r *rights, _ *grpc.ClientConn, column string) error {
	job := map[string]string{"task": "one", "task of another namespace": "two"}[column]
	identity := func(job string) (*actorrpc.Identity, error) {
		return actorrpc.ParseIdentity([]byte(r.identities[job]))
	}
	served, err := identity("one")
	if err != nil {
		return err
	}
	caller, err := identity(job)
	if err != nil {
		return err
	}
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	accepted := make(chan error, 1)
	go func() { accepted <- tls.Server(there, served.ServerTLS()).HandshakeContext(ctx) }()
	client := tls.Client(here, caller.ClientTLS())
	if err = client.HandshakeContext(ctx); err != nil {
		here.Close()
	}
	go func() { _, _ = io.Copy(io.Discard, client) }() // what the server writes has to be read; ends with here
	return errors.Join(err, <-accepted)
}

// TestWhoMayDoWhat tries each cell of the guide's table, by the real program.
func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	columns, rows := rightsTable(t)
	tried := rightsTried()
	for what := range rows {
		if _, ok := tried[what]; !ok {
			t.Errorf("nothing tries the row %q", what)
		}
	}
	r := newRights(t)
	for what, try := range tried {
		row, ok := rows[what]
		if !ok {
			t.Errorf("the table has no row %q", what)
			continue
		}
		for _, column := range columns {
			t.Run(what+"/"+column, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				var err error
				_ = within(patience, func() error {
					if conn := r.conns[column]; conn != nil {
						err = try.task(ctx, r, conn, column)
					} else {
						err = try.person(t, r, column)
					}
					if row[column] && status.Code(err) == codes.Unavailable {
						return err // the controller does not lead, for a moment
					}
					return nil
				})
				if (err == nil) != row[column] {
					t.Errorf("may a %s %s? The table says %t, and trying it says %v", column, what, row[column], err)
				}
			})
		}
	}
}
