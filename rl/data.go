package rl

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ModelTag names a model of a run.
type ModelTag = string

// DefaultModel is the tag of trajectories and batches that have none.
const DefaultModel ModelTag = "default"

// TagOf is a tag, DefaultModel if it is missing.
func TagOf(tag ModelTag) ModelTag {
	if tag == "" {
		return DefaultModel
	}
	return tag
}

// Item is what a data source gives: fields by name. A loader adds group_id, run_id and index.
type Item = map[string]any

// Lease is the right of one worker to roll one task out. It is also the worker's activity.
type Lease struct {
	ID     string `json:"id"`
	Route  Route  `json:"route"`
	Epoch  int    `json:"epoch"`   // of the run: it grows when the run goes back to a checkpoint
	TaskID string `json:"task_id"` // by TaskID
}

// Task is an item that a worker has leased.
type Task struct {
	Item  Item  `json:"item"`
	Lease Lease `json:"lease"`
}

// TaskID names a task by the pass over the data, the item's index and the repetition. It is the same in
// every run.
func TaskID(pass, index, run int) string { return fmt.Sprintf("%d/%d/%d", pass, index, run) }

// Header is what Go reads of a trajectory.
type Header struct {
	ModelTag ModelTag `json:"model_tag,omitempty"`
	// Keys are the values of the group keys, each a string or an integer.
	Keys        map[string]any     `json:"keys,omitempty"`
	Fields      []string           `json:"fields,omitempty"` // names of all of its fields, sorted
	Scores      map[string]float64 `json:"scores,omitempty"`
	TaskID      string             `json:"task_id,omitempty"`
	Lease       string             `json:"lease,omitempty"`
	Epoch       int                `json:"epoch,omitempty"`
	Tokens      int                `json:"tokens,omitempty"`
	Temperature *float64           `json:"temperature,omitempty"`
	Version     *int64             `json:"version,omitempty"`     // of the weights that rolled it out; nil: not known
	DataSource  string             `json:"data_source,omitempty"` // validation means are also made per source
}

// UnmarshalJSON reads a header as MarshalJSON writes it: keys that are integers stay integers.
func (h *Header) UnmarshalJSON(text []byte) error {
	type plain Header
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode((*plain)(h)); err != nil {
		return fmt.Errorf("read a trajectory's header: %w", err)
	}
	for name, value := range h.Keys {
		if number, ok := value.(json.Number); ok {
			n, err := number.Int64()
			if err != nil {
				return fmt.Errorf("read a trajectory's header: group key %q: %w", name, err)
			}
			h.Keys[name] = n
		}
	}
	return nil
}

// BatchVerdict is what weight sync answers to a batch that a pool is about to give.
type BatchVerdict struct {
	Counted bool  `json:"counted"` // it is trained on next; else it has trajectories of weights before Floor
	Floor   int64 `json:"floor"`   // the version of weights before which no trajectory may be in the next batch; 0: any may
}

// TaskAgain is a task whose trajectory a pool had accepted and does not use, since its weights are too old. A pool numbers
// these, from 1 on.
type TaskAgain struct {
	Number int64  `json:"number"`
	TaskID string `json:"task_id"`
	Epoch  int    `json:"epoch"` // of its lease
}

// Batch is what a trajectory pool gives: Payloads and Headers of the same length, metadata "batch_size".
type Batch struct {
	ID       string         `json:"id"`
	Metadata map[string]any `json:"metadata"`
	Payloads [][]byte       `json:"payloads"`
	Headers  []Header       `json:"headers"`
}

// TrainHeader is what Go reads of a batch for training.
type TrainHeader struct {
	ID        string   `json:"id"`
	ModelTag  ModelTag `json:"model_tag,omitempty"`
	BatchSize int      `json:"batch_size"`
	UpdateFn  string   `json:"update_fn,omitempty"`
	Source    string   `json:"source,omitempty"` // ID of the Batch from which it was made
	Tasks     []string `json:"tasks,omitempty"`  // of the trajectories in that Batch
}

// Untrained is what a pool knows of tasks that are done and that no update may be made of yet.
type Untrained struct {
	Waiting []string `json:"waiting"` // their trajectories are in the pool, and nothing of them was trained on
	Trained []string `json:"trained"` // a train worker has had something of them
}

// TrainBatch is what a train batch pool gives.
type TrainBatch struct {
	ID      string      `json:"id"`
	Header  TrainHeader `json:"header"`
	Payload []byte      `json:"payload"`
}

// Position is how far a loader is.
type Position struct {
	Epoch int `json:"epoch"` // the pass over the data
	Batch int `json:"batch"` // the next batch of the pass
	Index int `json:"index"` // the next item of the pass
}

// LoaderStatus is one atomic reading of a loader. Drained with Leased 0 is quiescence: no task is to be
// given and none is rolled out.
type LoaderStatus struct {
	// Drained is that no item can be had: the buffer is empty, and the next batch is locked or there is none.
	Drained  bool     `json:"drained"`
	Leased   int      `json:"leased"`
	Finished bool     `json:"finished"` // exhausted and drained
	Position Position `json:"position"`
	Locked   bool     `json:"locked"`
}

// Quiet reports whether nothing is rolled out and nothing is to be, until the loader is unlocked or reset.
func (s LoaderStatus) Quiet() bool { return s.Drained && s.Leased == 0 }
