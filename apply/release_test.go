package apply

import (
	"maps"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// bucket is a store in which a save takes a while.
type bucket struct{ store.Store }

func (bucket) WriteInterval() time.Duration { return time.Second }

// An action that destroys evidence begins once the newest state is saved. Before, it takes both that
// the step whose state is saved asked for the same, and that nothing has changed since that has to
// do with it.
func TestActionsThatDestroyEvidenceWaitForSaves(t *testing.T) {
	a, b := schema.Address{Kind: schema.KindJob, Name: "a"}, schema.Address{Kind: schema.KindJob, Name: "b"}
	saved := &state.Document{
		Jobs:   map[schema.Address]*state.Job{a: {Slices: []string{"s"}}, b: {Slices: []string{"t"}}},
		Slices: map[string]*state.Slice{"s": {}, "t": {}},
	}
	since := func(changed schema.Address) *state.Document {
		next := *saved
		next.Jobs = maps.Clone(saved.Jobs)
		was := *saved.Jobs[changed]
		next.Jobs[changed] = &was
		return &next
	}
	stop := func(generation int64) plan.Action {
		return plan.Action{
			Verb: plan.Assign, Addr: a, Slice: &schema.SliceSpec{Name: "s"}, AfterSave: true,
			Assignment: &state.Assignment{Slice: "s", Generation: generation},
		}
	}
	deletion, forgetting := stop(3), stop(3)
	deletion.Verb, deletion.Assignment = plan.DeleteSlice, nil
	forgetting.Verb, forgetting.Assignment = plan.ForgetSlice, nil
	other := stop(3)
	other.Slice = &schema.SliceSpec{Name: "t"}
	start := stop(3)
	start.AfterSave = false
	for name, c := range map[string]struct {
		doc    *state.Document
		asked  []plan.Action // by the step whose state is saved
		action plan.Action
		where  store.Store
		begins bool
	}{
		"the newest state is saved, which nothing asked for before": {doc: saved, action: stop(3), begins: true},
		"the same was asked for, and another job has changed":       {doc: since(b), asked: []plan.Action{stop(3)}, action: stop(3), begins: true},
		"a deletion was asked for, and another job has changed":     {doc: since(b), asked: []plan.Action{deletion}, action: deletion, begins: true},
		"the same was asked for, and its job has changed":           {doc: since(a), asked: []plan.Action{stop(3)}, action: stop(3)},
		"a deletion was asked for, and its job has changed":         {doc: since(a), asked: []plan.Action{deletion}, action: deletion},
		"nothing was asked for, and another job has changed":        {doc: since(b), action: stop(3)},
		"that was asked for of another slice":                       {doc: since(b), asked: []plan.Action{other}, action: stop(3)},
		"another assignment was asked for":                          {doc: since(b), asked: []plan.Action{stop(2)}, action: stop(3)},
		"something else was asked for of the slice":                 {doc: since(b), asked: []plan.Action{deletion}, action: forgetting},
		"a directory, in which all saves are awaited":               {doc: since(b), asked: []plan.Action{stop(3)}, action: stop(3), where: storetest.NewMemory()},
		"no evidence is destroyed":                                  {doc: since(a), action: start, begins: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &saver{store: bucket{storetest.NewMemory()}, saved: saved, asked: map[string]plan.Action{}, now: time.Now}
			if c.where != nil {
				s.store = c.where
			}
			for _, asked := range c.asked {
				s.asked[asked.Slice.Name] = asked
			}
			free := s.release(c.doc, []plan.Action{c.action})
			if len(free) == 1 != c.begins || len(s.held) == 1 == c.begins {
				t.Errorf("the actions that begin are %v, and %d are held; want that it begins: %t", free, len(s.held), c.begins)
			}
		})
	}
}
