package admission

import (
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// clash is what becomes of jobs that live under the names of an order.
type clash struct {
	kept   *Launched        // they are the answer
	ending []schema.Address // they are to end first
}

// clashes decides by what the requests say. The names of a group are those of
// all that lives in it.
func (o *Order) clashes(doc *state.Document, addrs []schema.Address) (clash, error) {
	taken := map[schema.Address]*state.Job{}
	for _, addr := range addrs {
		if j := doc.Jobs[addr]; j != nil && !j.Status.Ended() {
			taken[addr] = j
		}
	}
	policy := o.Requests[0].GetNameClash()
	if group := addrs[0].GroupAddress(); !group.IsZero() {
		for addr, j := range doc.Jobs {
			if addr.GroupAddress() == group && !j.Status.Ended() {
				taken[addr] = j
			}
		}
		policy = o.groupPolicy()
	}
	if len(taken) == 0 {
		return clash{}, nil
	}
	switch policy {
	case clusterapi.NameClash_NAME_CLASH_KEEP:
		kept := &Launched{Existed: true}
		for _, addr := range addrs {
			if j := taken[addr]; j != nil {
				kept.IDs = append(kept.IDs, j.ID)
			}
		}
		if len(kept.IDs) == len(addrs) {
			return clash{kept: kept}, nil
		}
	case clusterapi.NameClash_NAME_CLASH_RECREATE:
		return o.recreated(doc, taken)
	case clusterapi.NameClash_NAME_CLASH_ERROR, clusterapi.NameClash_NAME_CLASH_UNSPECIFIED:
	}
	first := slices.MinFunc(addrsOf(taken), schema.Address.Compare)
	return clash{}, status.Errorf(codes.AlreadyExists, "%s lives already (%s, %s): choose another name, or say with name_clash whether to keep or to recreate it",
		first, taken[first].ID, taken[first].Status)
}

// groupPolicy is the strongest of what the requests say.
func (o *Order) groupPolicy() clusterapi.NameClash {
	policy := clusterapi.NameClash_NAME_CLASH_UNSPECIFIED
	for _, r := range o.Requests {
		policy = max(policy, r.GetNameClash())
	}
	return policy
}

func addrsOf(jobs map[schema.Address]*state.Job) []schema.Address {
	addrs := make([]schema.Address, 0, len(jobs))
	for addr := range jobs {
		addrs = append(addrs, addr)
	}
	return addrs
}

// recreated are the jobs to end, as far as the caller may.
func (o *Order) recreated(doc *state.Document, taken map[schema.Address]*state.Job) (clash, error) {
	x := jobs.NewTable(doc)
	var ending []schema.Address
	for addr, j := range taken {
		if err := x.MayEnd(o.Caller, j); err != nil {
			return clash{}, err
		}
		if j.ID == o.Caller.JobID {
			return clash{}, status.Errorf(codes.FailedPrecondition, "job %s would end itself before it could start its successor: choose another name", j.ID)
		}
		ending = append(ending, addr)
	}
	slices.SortFunc(ending, schema.Address.Compare)
	return clash{ending: ending}, nil
}
