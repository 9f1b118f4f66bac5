package bugreport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/status"
)

// Bounds of what is taken of a large stack.
const (
	maxObjects = 500  // assignments, reports
	maxListed  = 5000 // keys
	maxEvents  = 2000
	maxTasks   = 200 // whose logs are taken
)

// state adds the document, without what it has sealed.
func (s *subject) state(ctx context.Context, into *sink) error {
	if s.stack == nil {
		return errNoStore
	}
	switch {
	case s.doc != nil:
		text, err := state.Text(*s.doc)
		if err != nil {
			return err
		}
		into.add("state.json", text)
	case len(s.raw) > 0: // it is damaged, and that is what the report is about
		into.add("state.damaged.json", s.raw)
	}
	for _, key := range []string{store.LeaseKey, store.HandoverKey} {
		if object, err := s.stack.Store.Get(ctx, key); err == nil {
			into.add(key, indented(object.Data))
		}
	}
	return nil
}

// indented is JSON for people; what is none stays as it is.
func indented(data []byte) []byte {
	var out bytes.Buffer
	if json.Indent(&out, data, "", "  ") != nil {
		return data
	}
	return append(out.Bytes(), '\n')
}

// store adds which objects the store has, and how long it takes to answer.
func (s *subject) store(ctx context.Context, into *sink) error {
	if s.stack == nil {
		return errNoStore
	}
	var took strings.Builder
	fmt.Fprintf(&took, "%s\n", s.stack.Store.Location())
	for n := range 3 {
		began := time.Now()
		_, err := s.stack.Store.Get(ctx, store.LeaseKey)
		fmt.Fprintf(&took, "read of the lease %d: %s, error: %v\n", n+1, time.Since(began).Round(time.Microsecond), err)
	}
	began := time.Now()
	listed, err := s.stack.Store.List(ctx, "")
	fmt.Fprintf(&took, "list of %d objects: %s, error: %v\n", len(listed), time.Since(began).Round(time.Microsecond), err)
	into.add("store/latency.txt", []byte(took.String()))
	if err != nil {
		return fmt.Errorf("list the store: %w", err)
	}
	var keys strings.Builder
	for i, o := range listed {
		if i == maxListed {
			fmt.Fprintf(&keys, "and %d more\n", len(listed)-i)
			break
		}
		fmt.Fprintf(&keys, "%s\t%d bytes\tversion %d\t%s\n", o.Key, o.Size, o.Generation, o.Updated.UTC().Format(time.RFC3339))
	}
	into.add("store/objects.txt", []byte(keys.String()))
	return nil
}

// events adds the last events.
func (s *subject) events(ctx context.Context, into *sink) error {
	if s.stack == nil {
		return errNoStore
	}
	found, err := (&store.EventReader{Store: s.stack.Store, Last: maxEvents}).Next(ctx)
	if len(found) > 0 {
		text, encodeErr := store.EncodeEvents(found[max(0, len(found)-maxEvents):])
		if encodeErr != nil {
			return encodeErr
		}
		into.add("events.jsonl", text)
	}
	return err
}

// status adds what fray status prints.
func (s *subject) status(ctx context.Context, into *sink) error {
	if s.loaded == nil {
		return errNoState()
	}
	view, err := status.Read(ctx, s.loaded)
	if err != nil {
		return err
	}
	quiet, printed := silent()
	if err := view.Text(quiet); err != nil {
		return err
	}
	into.add("status.txt", printed.Bytes())
	document, err := json.MarshalIndent(view.Document(), "", "  ")
	if err == nil {
		into.add("status.json", document)
	}
	return err
}

func errNoState() error { return fmt.Errorf("the state was not read") }

// plan adds the plan of the files, or why there is none.
func (s *subject) plan(ctx context.Context, into *sink) error {
	quiet, printed := silent()
	flags := proposal.ChangeOptions{Options: s.options.Configuration}
	flags.Input = false
	l, c, err := proposal.Read(ctx, quiet, []string{s.options.Dir}, &flags, false)
	if err != nil {
		into.add("plan.txt", append(printed.Bytes(), []byte("\n"+err.Error()+"\n")...))
		return printedError(err, printed)
	}
	p, err := proposal.Preview(ctx, l, c)
	if err != nil {
		into.add("plan.txt", append(printed.Bytes(), []byte("\n"+err.Error()+"\n")...))
		return printedError(err, printed)
	}
	if err := proposal.Show(quiet, l, p, false, false); err != nil {
		return err
	}
	into.add("plan.txt", printed.Bytes())
	asJSON, document := silent()
	if err := proposal.Show(asJSON, l, p, true, false); err != nil {
		return err
	}
	into.add("plan.json", document.Bytes())
	return nil
}

// agents adds what hosts reported last, and what they were assigned.
func (s *subject) agents(ctx context.Context, into *sink) error {
	if s.stack == nil {
		return errNoStore
	}
	listed, err := s.stack.Store.List(ctx, store.HostsPrefix, store.AssignPrefix, store.BootPrefix)
	if err != nil {
		return err
	}
	for _, o := range listed[:min(len(listed), maxObjects)] {
		object, err := s.stack.Store.Get(ctx, o.Key)
		if err != nil {
			into.note("%s: %v", o.Key, err)
			continue
		}
		into.add("agents/"+o.Key, indented(object.Data))
	}
	if over := len(listed) - maxObjects; over > 0 {
		into.note("%d more objects", over)
	}
	return nil
}

// task is a task whose log is taken.
type task struct {
	job     schema.Address
	id      string
	attempt int
	index   int
	rank    int // failed ones first
}

// tasks are those of the last two attempts of each job.
func (s *subject) tasks() []task {
	var found []task
	for _, addr := range stack.SortedJobs(s.doc) {
		j := s.doc.Jobs[addr]
		for _, attempt := range j.Attempts[max(0, len(j.Attempts)-2):] {
			for i := range attempt.Tasks {
				t := task{job: addr, id: j.ID, attempt: attempt.Number, index: i, rank: 2}
				switch {
				case attempt.Tasks[i].State == schema.TaskFailed || j.Status == schema.JobFailed:
					t.rank = 0
				case !j.Status.Ended():
					t.rank = 1
				}
				found = append(found, t)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b task) int { return cmp.Compare(a.rank, b.rank) })
	return found
}

// logs adds the ends of what tasks wrote.
func (s *subject) logs(ctx context.Context, into *sink) error {
	if s.loaded == nil {
		return errNoState()
	}
	found := s.tasks()
	for _, t := range found[:min(len(found), maxTasks)] {
		of := store.LogName{Job: t.id, Attempt: t.attempt, Task: t.index}
		length, err := store.LogSize(ctx, s.stack.Store, of)
		if err != nil {
			into.note("log of %s: %v", t.job, err)
			continue
		}
		if length == 0 {
			continue
		}
		var log bytes.Buffer
		_, err = store.ReadLog(ctx, s.stack.Store, of, max(0, length-int64(s.options.Logs)-margin), func(data []byte) error {
			log.Write(data)
			return nil
		})
		if err != nil {
			into.note("log of %s: %v", t.job, err)
		}
		if log.Len() > 0 {
			into.addTail(fmt.Sprintf("logs/%s/attempt-%d-task-%d.log", t.job, t.attempt, t.index), log.Bytes(), s.options.Logs)
		}
	}
	if over := len(found) - maxTasks; over > 0 {
		into.note("the logs of %d more tasks", over)
	}
	return nil
}

// configuration adds the files that were asked for, with what is sensitive masked.
func (s *subject) configuration(_ context.Context, into *sink) error {
	for name, data := range s.files {
		if s.unread[name] {
			into.note("%s cannot be parsed, so that what is secret in it is not known", filepath.Base(name))
			continue
		}
		into.add("configuration/"+filepath.Base(name), data)
	}
	return nil
}
