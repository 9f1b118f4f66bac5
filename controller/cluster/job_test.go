package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/describe"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// TestSemantics07: ending a job ends all that it launched, and nothing of it
// asks for anything afterwards.
func TestSemantics07(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	top := command("top")
	top.Namespace = "rl"
	topID := r.launch(r.user(), top)
	r.running(topID)
	midID := r.launch(r.as(topID), command("mid"))
	r.running(midID)
	lowID := r.launch(r.as(midID), command("low"))
	r.running(lowID)
	side := command("side")
	side.Namespace = "rl"
	sideID := r.launch(r.user(), side)
	r.running(sideID)
	far := command("far")
	farID := r.launch(r.user(), far)
	r.running(farID)

	for _, tt := range []struct {
		name string
		who  context.Context
		job  string
		code codes.Code
	}{
		{"its parent", r.as(midID), topID, codes.PermissionDenied},
		{"a sibling in the namespace", r.as(midID), sideID, codes.PermissionDenied},
		{"another namespace", r.as(midID), farID, codes.PermissionDenied},
		{"a name that is not there", r.as(midID), "lowe", codes.NotFound},
		{"what it launched", r.as(topID), lowID, codes.OK},
	} {
		if _, err := r.client.Terminate(tt.who, &clusterapi.TerminateRequest{JobId: tt.job}); status.Code(err) != tt.code {
			t.Errorf("terminate %s: %v, want %s", tt.name, err, tt.code)
		}
	}
	r.until(lowID, "stopped", func(j *state.Job) bool { return j.Status == schema.JobStopped })
	if _, err := r.client.Terminate(r.user(), &clusterapi.TerminateRequest{JobId: topID}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{topID, midID} {
		j := r.until(id, "stopped", func(j *state.Job) bool { return j.Status == schema.JobStopped && len(j.Slices) == 0 })
		if j.Running() {
			t.Errorf("%s runs", id)
		}
	}
	r.running(sideID)
	before := r.View().Doc
	if _, err := r.client.Terminate(r.user(), &clusterapi.TerminateRequest{JobId: topID}); err != nil { // once more
		t.Error(err)
	}
	if after := r.View().Doc; after.Jobs[schema.LaunchedAddress(schema.KindJob, "rl", "", "top")] != before.Jobs[schema.LaunchedAddress(schema.KindJob, "rl", "", "top")] {
		t.Error("ending what has ended changed it")
	}
}

func TestFindingJobs(t *testing.T) {
	stack := accesstest.LocalStack()
	stack.Jobs = []schema.Job{{
		Addr: schema.Address{Kind: schema.KindJob, Name: "etl", Key: schema.IntKey(1)}, Namespace: "etl", Command: []schema.Text{schema.Plain("x")},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
	}}
	r := newRig(t, stack)
	ids := map[string]string{}
	for _, namespace := range []string{"a", "b"} {
		request := command("train")
		request.Namespace = namespace
		ids[namespace] = r.launch(r.user(), request)
		r.running(ids[namespace])
	}
	etl := r.View().Doc.Jobs[stack.Jobs[0].Addr].ID
	tests := []struct {
		name string
		who  context.Context
		text string
		want string // an id
		code codes.Code
		says string
	}{
		{"id", r.user(), ids["b"], ids["b"], codes.OK, ""},
		{"address", r.user(), "job.b/train", ids["b"], codes.OK, ""},
		{"namespace and name", r.user(), "a/train", ids["a"], codes.OK, ""},
		{"declared", r.user(), "job.etl[1]", etl, codes.OK, ""},
		{"declared by its name", r.user(), "etl[1]", etl, codes.OK, ""},
		{"own namespace", r.as(ids["a"]), "train", ids["a"], codes.OK, ""},
		{"two of them", r.user(), "train", "", codes.InvalidArgument, "job.a/train, job.b/train"},
		{"near name", r.as(ids["a"]), "tain", "", codes.NotFound, `did you mean "train"?`},
		{"nothing near", r.user(), "zzzzzz", "", codes.NotFound, `there is no job "zzzzzz"`},
		{"another's", r.as(ids["a"]), ids["b"], "", codes.PermissionDenied, "in namespace b"},
		{"nothing", r.user(), "", "", codes.InvalidArgument, "job_id is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			info, err := r.client.Poll(tt.who, &clusterapi.PollRequest{JobId: tt.text})
			if status.Code(err) != tt.code || info.GetJobId() != tt.want || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, %v; want %s, %s", info, err, tt.want, tt.code)
			}
		})
	}
	list, err := r.client.ListJobs(r.user(), &clusterapi.ListJobsRequest{})
	if err != nil || len(list.GetJobs()) != 3 || list.GetJobs()[0].GetName() != "etl[1]" {
		t.Errorf("ListJobs = %v, %v", list, err)
	}
	list, err = r.client.ListJobs(r.as(ids["a"]), &clusterapi.ListJobsRequest{Prefix: "tr"})
	if err != nil || len(list.GetJobs()) != 1 || list.GetJobs()[0].GetJobId() != ids["a"] {
		t.Errorf("ListJobs of a = %v, %v", list, err)
	}
	r.End(ids["b"], schema.TaskSucceeded)
	r.until(ids["b"], "ended", func(j *state.Job) bool { return j.Status.Ended() })
	for ended, want := range map[bool]int{false: 1, true: 2} {
		list, err := r.client.ListJobs(r.user(), &clusterapi.ListJobsRequest{Prefix: "train", Ended: ended})
		if err != nil || len(list.GetJobs()) != want {
			t.Errorf("ListJobs with those that have ended %t = %v, %v", ended, list, err)
		}
	}
	if _, err := r.client.ListJobs(r.as(ids["a"]), &clusterapi.ListJobsRequest{Namespace: "b"}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("ListJobs of another namespace: %v", err)
	}
}

// TestFirstLook: who has begun to lead and not looked yet knows of nothing, and
// does not say that there is nothing.
func TestFirstLook(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	id := r.launch(r.user(), command("a"))
	r.running(id)
	r.Unstep()
	before := r.Waits()
	polled := make(chan error, 1)
	go func() {
		_, err := r.client.Poll(r.user(), &clusterapi.PollRequest{JobId: id})
		polled <- err
	}()
	r.eventually("Poll waits for a view", func() bool { return r.Waits() > before })
	r.Settle()
	if err := <-polled; err != nil {
		t.Error(err)
	}
}

func TestWait(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	a, b := r.launch(r.user(), command("a")), r.launch(r.user(), command("b"))
	r.running(a)
	r.running(b)
	both := []string{b, a}
	now, err := r.client.Wait(r.user(), &clusterapi.WaitRequest{JobIds: both, Timeout: durationpb.New(0)})
	if err != nil || len(now.GetJobs()) != 2 || now.GetJobs()[0].GetJobId() != b || now.GetJobs()[1].GetStatus() != clusterapi.JobStatus_JOB_STATUS_RUNNING {
		t.Fatalf("as they stand = %v, %v", now, err)
	}
	any, all := make(chan *clusterapi.WaitResponse, 1), make(chan *clusterapi.WaitResponse, 1)
	for answers, any := range map[chan *clusterapi.WaitResponse]bool{any: true, all: false} {
		go func() {
			answer, err := r.client.Wait(r.user(), &clusterapi.WaitRequest{JobIds: both, Any: any})
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
	}
	r.End(a, schema.TaskFailed)
	got := <-any
	if got.GetJobs()[1].GetStatus() != clusterapi.JobStatus_JOB_STATUS_FAILED || got.GetJobs()[1].GetReason() == "" || got.GetJobs()[0].GetStatus() != clusterapi.JobStatus_JOB_STATUS_RUNNING {
		t.Errorf("any = %v", got)
	}
	select {
	case got := <-all:
		t.Fatalf("all = %v before b ended", got)
	default:
	}
	r.End(b, schema.TaskSucceeded)
	got = <-all
	if got.GetJobs()[0].GetStatus() != clusterapi.JobStatus_JOB_STATUS_SUCCEEDED || got.GetJobs()[0].GetEndedAt() == nil {
		t.Errorf("all = %v", got)
	}
	if _, err := r.client.Wait(r.user(), &clusterapi.WaitRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("for nothing: %v", err)
	}
	if _, err := r.client.Wait(r.user(), &clusterapi.WaitRequest{JobIds: []string{a, "missing"}}); status.Code(err) != codes.NotFound {
		t.Errorf("for a missing job: %v", err)
	}
}

// TestWaitForWhatIsTakenAway: a job that a plan deletes has ended.
func TestWaitForWhatIsTakenAway(t *testing.T) {
	stack := accesstest.LocalStack()
	stack.Jobs = []schema.Job{{
		Addr: schema.Address{Kind: schema.KindJob, Name: "etl"}, Namespace: "etl", Command: []schema.Text{schema.Plain("x")},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
	}}
	r := newRig(t, stack)
	answers, before := make(chan *clusterapi.WaitResponse, 1), r.Waits()
	go func() {
		answer, err := r.client.Wait(r.user(), &clusterapi.WaitRequest{JobIds: []string{"etl"}})
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	r.eventually("Wait waits", func() bool { return r.Waits() > before })
	err := r.Do(t.Context(), func(doc *state.Document, _ time.Time) (*state.Document, error) {
		next := doc.Clone()
		next.Desired.Jobs = nil
		return next, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := <-answers
	if j := got.GetJobs()[0]; j.GetStatus() != clusterapi.JobStatus_JOB_STATUS_STOPPED || !strings.Contains(j.GetReason(), "removed") {
		t.Errorf("got %v", j)
	}
}

// TestPendingSaysWhy: a job that waits says so, and what for.
func TestPendingSaysWhy(t *testing.T) {
	stack := accesstest.LocalStack()
	stack.Providers[0].Slices = 1
	r := newRig(t, stack)
	r.running(r.launch(r.user(), command("a")))
	id := r.launch(r.user(), command("b"))
	err := access.Await(r.user(), r.server.State, func(v *access.View) bool {
		info := describe.Job(v, jobs.NewTable(v.Doc).ByID(id))
		return info.GetStatus() == clusterapi.JobStatus_JOB_STATUS_PENDING && strings.Contains(strings.Join(info.GetPendingReasons(), " "), "1 of 1")
	})
	if err != nil {
		t.Errorf("%v; it is %v", err, describe.Job(r.View(), jobs.NewTable(r.View().Doc).ByID(id)))
	}
}

func (r *rig) uploading(head *clusterapi.UploadRequest, parts ...[]byte) (*clusterapi.UploadResponse, error) {
	r.t.Helper()
	stream, err := r.client.Upload(r.user())
	if err != nil {
		r.t.Fatal(err)
	}
	if head != nil {
		_ = stream.Send(head) // what is wrong is told at the end
	}
	for _, part := range parts {
		if err := stream.Send(&clusterapi.UploadRequest{Data: part}); errors.Is(err, io.EOF) {
			break
		}
	}
	return stream.CloseAndRecv()
}

func TestUpload(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	of := func(data []byte) string {
		sum := sha256.Sum256(data)
		return hex.EncodeToString(sum[:])
	}
	head := func(sum string, size int64) *clusterapi.UploadRequest {
		return &clusterapi.UploadRequest{Sha256: sum, Size: size}
	}
	parts := slices.Collect(slices.Chunk(content, 1<<20))
	size := int64(len(content))
	for _, tt := range []struct {
		name  string
		head  *clusterapi.UploadRequest
		parts [][]byte
		want  string
	}{
		{"another hash", head(of([]byte("x")), size), parts, "nothing was kept"},
		{"too few bytes", head(of(content), size+1), parts, "were announced"},
		{"too many bytes", head(of(content), size-1), parts, "more than"},
		{"too large a part", head(of(content), size), [][]byte{content}, "more than"},
		{"no hash", head("../../lease.json", size), parts, "64 lower-case"},
		{"too large", head(of(content), 5<<30), parts, "at most"},
		{"less than nothing", head(of(content), -1), parts, "at most"},
		{"nothing", nil, nil, "begin with sha256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := r.uploading(tt.head, tt.parts...); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if kept, _ := r.store.List(t.Context(), store.BundlesPrefix); len(kept) > 0 {
				t.Errorf("kept %v", kept)
			}
		})
	}
	if answer, err := r.uploading(head(of(content), size), parts...); err != nil || answer.GetExisted() {
		t.Fatalf("Upload = %v, %v", answer, err)
	}
	blob, err := r.store.Get(t.Context(), store.BundleKey(of(content)))
	if err != nil || !bytes.Equal(blob.Data, content) {
		t.Errorf("stored %d bytes, %v; want %d", len(blob.Data), err, size)
	}
	if answer, err := r.uploading(head(of(content), size), parts...); err != nil || !answer.GetExisted() {
		t.Errorf("again = %v, %v", answer, err)
	}
	if answer, err := r.uploading(&clusterapi.UploadRequest{Sha256: of([]byte("small")), Size: 5, Data: []byte("small")}); err != nil || answer.GetExisted() {
		t.Errorf("in one message = %v, %v", answer, err)
	}
	if _, err := r.uploading(head(of(nil), 0)); err != nil {
		t.Errorf("an empty one: %v", err)
	}
}
