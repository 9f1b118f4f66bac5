package cluster

import (
	"sync"
	"testing"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
)

// Fact 34: many callers that launch one name at the same time, and ask to keep what
// exists, get the same job.
func TestFact34ARaceYieldsOneJob(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	const racers = 20
	answers, made := make([]*clusterapi.LaunchResponse, racers), 0
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			request := command("a")
			request.NameClash = clusterapi.NameClash_NAME_CLASH_KEEP
			var err error
			if answers[i], err = r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: request}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, got := range answers {
		if got.GetJobId() != answers[0].GetJobId() {
			t.Errorf("two got the jobs %s and %s, want the same", answers[0].GetJobId(), got.GetJobId())
		}
		if !got.GetExisted() {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d answers report a launch, want one", made)
	}
	if doc := r.View().Doc; len(doc.Jobs)+len(doc.Past) != 1 {
		t.Errorf("%d jobs and %d past ones were launched, want one", len(doc.Jobs), len(doc.Past))
	}
}
