package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// clusterTaskWord makes the test binary a task of the cluster proofs:
//
//	BINARY cluster-task parent DIR CHILDREN
//	BINARY cluster-task child DIR NAME
//	BINARY cluster-task rash DIR NAME (a parent whose retries launch the same again)
//	BINARY cluster-task look DIR ACTOR (prints where that is, for fray run)
//
// Tasks meet the test in DIR: they add lines to the files "starts" (name,
// attempt, pid: one for each process that begins), "overlaps" (the same, where
// an earlier process of that name was still there) and "told" (what the parent
// was answered), and wait for files that the test makes.
const clusterTaskWord = "cluster-task"

// clusterTask is what the binary does then; it returns its exit code.
func clusterTask(args []string) int {
	if args[0] == "look" {
		return look(args[2])
	}
	task, err := newProofTask(args)
	if err == nil && args[0] == "parent" {
		err = task.parent(args[2])
	} else if err == nil && args[0] == "rash" {
		err = task.rash()
	} else if err == nil {
		err = task.child()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// look prints where an actor is, as a program of the cluster.
func look(actor string) int {
	p := &proofTask{}
	var err error
	var found *clusterapi.ActorEndpoint
	if p.conn, err = p.connect(); err == nil {
		err = p.keep(func(ctx context.Context) (err error) {
			found, err = clusterapi.NewMetadataClient(p.conn).Lookup(ctx, &clusterapi.LookupRequest{Name: actor, Namespace: "parent"})
			return err
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(actor, "is at", found.GetAddress())
	return 0
}

type proofTask struct {
	dir, name, attempt string
	conn               *grpc.ClientConn
}

func newProofTask(args []string) (*proofTask, error) {
	p := &proofTask{dir: args[1], name: args[2], attempt: os.Getenv("FRAY_ATTEMPT")}
	if args[0] == "parent" {
		p.name = "parent"
	}
	before, err := os.ReadFile(filepath.Join(p.dir, "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	me := fmt.Sprintf("%s %s %d", p.name, p.attempt, os.Getpid())
	if err := p.note("starts", me); err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(before)) {
		words := strings.Fields(line)
		if pid, err := strconv.Atoi(words[2]); err == nil && words[0] == p.name && letter(pid) != 'Z' {
			if err := p.note("overlaps", me+" beside "+strings.TrimSpace(line)); err != nil {
				return nil, err
			}
		}
	}
	p.conn, err = p.connect()
	return p, err
}

func (*proofTask) connect() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+os.Getenv("FRAY_CLUSTER_ADDRESS"), grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// note adds a line to a file in one write.
func (p *proofTask) note(file, line string) error {
	f, err := os.OpenFile(filepath.Join(p.dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// await returns once the test has made a file.
func (p *proofTask) await(file string) {
	for {
		if _, err := os.Stat(filepath.Join(p.dir, file)); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// keep makes a call until it is answered.
func (p *proofTask) keep(call func(ctx context.Context) error) error {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+os.Getenv("FRAY_CLUSTER_TOKEN"))
		err := call(ctx)
		cancel()
		if code := status.Code(err); code != codes.Unavailable && code != codes.DeadlineExceeded {
			return err
		}
		if p.dir != "" {
			if err := p.note("told", fmt.Sprintf("again %v", err)); err != nil {
				return err
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// parent launches a child whenever the test says so, and waits for all of them.
func (p *proofTask) parent(children string) error {
	n, err := strconv.Atoi(children)
	if err != nil {
		return err
	}
	if err := p.register(); err != nil {
		return err
	}
	ids := make([]string, n)
	for i := range n {
		name := fmt.Sprintf("child-%d", i)
		p.await("go-" + name)
		if ids[i], err = p.launch(name); err != nil {
			return p.fail(name, err)
		}
		if err := p.lookup(name); err != nil {
			return p.fail(name, err)
		}
	}
	for i, id := range ids {
		var info *clusterapi.WaitResponse
		err := p.keep(func(ctx context.Context) (err error) {
			info, err = clusterapi.NewClusterClient(p.conn).Wait(ctx, &clusterapi.WaitRequest{JobIds: []string{id}})
			return err
		})
		if err != nil {
			return p.fail("wait", err)
		}
		if err := p.note("told", fmt.Sprintf("ended child-%d %s", i, info.GetJobs()[0].GetStatus())); err != nil {
			return err
		}
	}
	p.await("over")
	return nil
}

func (p *proofTask) fail(what string, err error) error {
	return errors.Join(err, p.note("told", fmt.Sprintf("failed %s: %v", what, err)))
}

// launch launches a child under a request id that is the same for every try.
func (p *proofTask) launch(name string) (string, error) {
	return p.order(name, p.attempt+"-"+name, false)
}

// rash launches child-0, detached, and child-1 when the test says so, under
// requests that are the same in each attempt, and ends when the test says so.
func (p *proofTask) rash() error {
	for i := range 2 {
		name := fmt.Sprintf("child-%d", i)
		p.await("go-" + name)
		if _, err := p.order(name, name, i == 0); err != nil {
			return p.fail(name, err)
		}
	}
	p.await("over")
	return nil
}

func (p *proofTask) order(name, request string, detached bool) (string, error) {
	if err := p.note("told", "sending "+name); err != nil {
		return "", err
	}
	var answer *clusterapi.LaunchResponse
	err := p.keep(func(ctx context.Context) (err error) {
		answer, err = clusterapi.NewClusterClient(p.conn).Launch(ctx, &clusterapi.LaunchRequest{
			RequestId: request,
			Request: &clusterapi.JobRequest{
				Name: name, Detached: detached,
				Entrypoint: &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Command{Command: &clusterapi.Command{Words: []string{os.Args[0], clusterTaskWord, "child", p.dir, name}}}},
				Resources:  &clusterapi.Resources{ReservationId: "pool"}, MaxRetriesFailure: 1,
			},
		})
		return err
	})
	if err != nil {
		return "", err
	}
	return answer.GetJobId(), p.note("told", fmt.Sprintf("answered %s %s", name, answer.GetJobId()))
}

func (p *proofTask) register() error {
	return p.keep(func(ctx context.Context) error {
		_, err := clusterapi.NewMetadataClient(p.conn).Register(ctx, &clusterapi.RegisterRequest{
			Name: "at-" + p.name, Address: "127.0.0.1:1", Unique: true, RequestId: p.name + "-" + p.attempt,
		})
		return err
	})
}

// lookup reports which endpoint is found under the parent's name.
func (p *proofTask) lookup(when string) error {
	return p.keep(func(ctx context.Context) error {
		found, err := clusterapi.NewMetadataClient(p.conn).Lookup(ctx, &clusterapi.LookupRequest{Name: "at-" + p.name})
		if err != nil {
			return err
		}
		return p.note("told", fmt.Sprintf("found %s %s", when, found.GetActorId()))
	})
}

// child makes itself known and ends when the test says so.
func (p *proofTask) child() error {
	if err := p.register(); err != nil {
		return p.fail(p.name, err)
	}
	if err := p.note("told", fmt.Sprintf("registered %s %s", p.name, p.attempt)); err != nil {
		return err
	}
	p.await("end-" + p.name)
	return nil
}
