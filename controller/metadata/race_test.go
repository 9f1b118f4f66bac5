package metadata

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// Fact 34 of names: of many jobs that register a unique name at the same time one
// has it, and all find that one.
func TestFact34ARaceYieldsOneActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const racers = 20
		r := newRegistrar(t, storetest.NewMemory(), 1, runningJobs("rl", racers)...)
		defer r.lose()
		ids := make([]string, racers)
		var all sync.WaitGroup
		for i := range racers {
			all.Go(func() {
				ctx := asJob(t, "rl", racerName(i), 1)
				got, err := r.Register(ctx, &clusterapi.RegisterRequest{Name: "server", Address: fmt.Sprintf("h:%d", i+1), Unique: true})
				if err != nil && status.Code(err) != codes.AlreadyExists {
					t.Error(err)
				}
				ids[i] = got.GetActorId()
			})
		}
		all.Wait()
		winner := ""
		for i, id := range ids {
			if id == "" {
				continue
			}
			if winner != "" {
				t.Errorf("%s and %s have the name, the second for %s", winner, id, racerName(i))
			}
			winner = id
		}
		for i := range racers {
			if got := r.found(asJob(t, "rl", racerName(i), 1), t, "server"); got != winner || got == "" {
				t.Errorf("%s finds %q, want %q", racerName(i), got, winner)
			}
		}
	})
}

func racerName(i int) string { return fmt.Sprintf("racer-%d", i) }

func runningJobs(namespace string, n int) []*state.Job {
	all := make([]*state.Job, n)
	for i := range all {
		all[i] = accesstest.RunningJob(namespace, racerName(i), 1)
	}
	return all
}
