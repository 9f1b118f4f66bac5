package apply

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Late makes [Config.Refine] for a configuration that was accepted earlier, for as
// long as that stands. Of what it evaluates to only the words of commands and the
// environment variables that wait for values are taken over: everything else
// stays as it was approved, whatever files, variables and data say by now. So do
// jobs that have succeeded or were stopped: they would run again.
type Late struct {
	Source  *schema.Source
	Options schema.Options // but for Computed
	Sealer  schema.Sealer
	Targets []schema.Address // what of it was taken over; nil: all
	// Data makes what data blocks are read with, whenever all is evaluated; nil:
	// nothing is known of them.
	Data func() schema.Reader

	values *schema.Evaluation
	texts  map[schema.Address]lateTexts
	read   readings
	rest   map[schema.Address]schema.Job // jobs whose texts were not taken over yet: they rest
}

// lateTexts are the texts of a job that wait for values.
type lateTexts struct {
	words     []int // of its command
	variables []string
}

// Refine returns what is desired with the values that doc knows, nil if that is
// what doc has. After an error the next call evaluates everything anew.
func (l *Late) Refine(doc *state.Document) (*schema.Desired, error) {
	if l.values == nil {
		return l.begin(doc)
	}
	known := l.read.news(doc)
	if len(known) == 0 {
		return l.reworded(doc, nil)
	}
	found, diags := l.values.Refine(known)
	if diags.HasErrors() {
		l.values = nil
		return nil, again(diags)
	}
	if found.Whole != nil {
		return l.whole(doc, found.Whole)
	}
	return l.reworded(doc, found.Jobs)
}

func (l *Late) begin(doc *state.Document) (*schema.Desired, error) {
	opts := l.Options
	if l.Data != nil {
		opts.Data = l.Data()
	}
	if l.texts == nil {
		unknown, diags := l.Source.Evaluate(opts)
		if diags.HasErrors() {
			return nil, again(diags)
		}
		l.texts = textsThatWait(&unknown.Desired, l.Targets)
	}
	opts.Computed = doc.Computed()
	values, diags := l.Source.Begin(opts)
	if diags.HasErrors() {
		return nil, again(diags)
	}
	l.values, l.rest = values, map[schema.Address]schema.Job{}
	return l.whole(doc, values.Config())
}

func (l *Late) whole(doc *state.Document, cfg *schema.Config) (*schema.Desired, error) {
	l.read = l.read.anew(doc, cfg, l.values)
	return l.reworded(doc, cfg.Desired.Jobs)
}

// reworded is what is desired with the texts of jobs that wait for values as they
// are now, and those of jobs that rest no more, nil if those are what doc has.
func (l *Late) reworded(doc *state.Document, jobs []schema.Job) (*schema.Desired, error) {
	var waiting []schema.Job
	for i := range jobs {
		addr := jobs[i].Addr
		if _, waits := l.texts[addr]; waits {
			l.rest[addr] = jobs[i]
		}
	}
	for addr, j := range l.rest {
		if !rests(doc.Jobs[addr]) {
			waiting = append(waiting, j)
			delete(l.rest, addr)
		}
	}
	if len(waiting) == 0 {
		return nil, nil
	}
	slices.SortFunc(waiting, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	now, err := schema.Desired{Jobs: waiting}.Seal(l.Sealer)
	if err != nil {
		return nil, err
	}
	var changed []schema.Job
	for i := range now.Jobs {
		addr := now.Jobs[i].Addr
		at, declared := slices.BinarySearchFunc(doc.Desired.Jobs, addr, func(j schema.Job, a schema.Address) int { return j.Addr.Compare(a) })
		if !declared {
			continue
		}
		texts := l.texts[addr]
		if next, differs := texts.over(&doc.Desired.Jobs[at], &now.Jobs[i]); differs {
			changed = append(changed, next)
		}
	}
	if len(changed) == 0 {
		return nil, nil
	}
	desired, err := doc.Desired.Refined(changed, l.Sealer)
	return &desired, err
}

// textsThatWait are those of a configuration of which nothing is known yet.
func textsThatWait(unknown *schema.Desired, targets []schema.Address) map[schema.Address]lateTexts {
	taken := func(schema.Address) bool { return true }
	if len(targets) > 0 {
		taken = Chosen(*unknown, targets)
	}
	all := map[schema.Address]lateTexts{}
	for i := range unknown.Jobs {
		j := &unknown.Jobs[i]
		if !j.HasUnknown() || !taken(j.Addr) {
			continue
		}
		var texts lateTexts
		for at, word := range j.Command {
			if word.IsUnknown() {
				texts.words = append(texts.words, at)
			}
		}
		for name, value := range j.Environment.Env {
			if value.IsUnknown() {
				texts.variables = append(texts.variables, name)
			}
		}
		all[j.Addr] = texts
	}
	return all
}

// over returns a job with the texts of another one, and whether that makes a
// difference. A text that is not known, or has no place in the job, is left.
func (t *lateTexts) over(job, now *schema.Job) (schema.Job, bool) {
	next, differs := *job, false
	next.Command = slices.Clone(job.Command)
	for _, at := range t.words {
		if len(now.Command) == len(next.Command) && replaces(now.Command[at], next.Command[at]) {
			next.Command[at], differs = now.Command[at], true
		}
	}
	next.Environment.Env = maps.Clone(job.Environment.Env)
	for _, name := range t.variables {
		value, given := now.Environment.Env[name]
		if was, has := next.Environment.Env[name]; given && has && replaces(value, was) {
			next.Environment.Env[name], differs = value, true
		}
	}
	return next, differs
}

func replaces(now, was schema.Text) bool { return !now.IsUnknown() && now != was }
