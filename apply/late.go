package apply

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Late makes [Config.Refine] for a configuration that was accepted earlier, for as
// long as that stands. Of what it evaluates to only the words of commands and the
// environment variables that wait for values are taken over: everything else
// stays as it was approved, whatever files, variables and data say by now. So do
// jobs that have succeeded or were stopped: they would run again.
type Late struct {
	Source  *lang.Source
	Options eval.Options // but for Computed
	Sealer  schema.Sealer
	Targets []schema.Address // what of it was taken over; nil: all
	// Data makes what data blocks are read with, whenever all is evaluated; nil:
	// nothing is known of them.
	Data func() eval.Reader

	values *lang.Evaluation
	texts  map[schema.Address]lateTexts
	read   readings
	queue  []schema.Job                  // whose texts are to be compared, each once, the longest waiting first
	rest   map[schema.Address]schema.Job // jobs whose texts were not taken over yet: they rest
}

// share is how many jobs are given other texts in one step. Each of them is ended
// and begun again, so that clients waiting for the step would wait for all of them;
// the others follow in the next steps.
const share = 2048

// lateTexts are the texts of a job that wait for values.
type lateTexts struct {
	words     []int // of its command
	variables []string
}

// Refine returns what is desired with the values that doc knows, nil if that is
// what doc has. Of many jobs whose texts have changed it takes over those of some;
// the next calls go on. After an error the next call evaluates everything anew.
func (l *Late) Refine(doc *state.Document) (*schema.Desired, error) {
	desired, err := l.refine(doc)
	if err != nil {
		l.values = nil
	}
	return desired, err
}

func (l *Late) refine(doc *state.Document) (*schema.Desired, error) {
	if l.values == nil {
		return l.begin(doc)
	}
	known := l.read.news(doc)
	if len(known) == 0 {
		return l.reworded(doc)
	}
	found, diags := l.values.Refine(known)
	if diags.HasErrors() {
		return nil, again(diags)
	}
	if found.Whole != nil {
		return l.whole(doc, found.Whole)
	}
	l.enqueue(found.Jobs)
	return l.reworded(doc)
}

func (l *Late) begin(doc *state.Document) (*schema.Desired, error) {
	opts := l.Options
	if l.Data != nil {
		opts.Data = l.Data()
	}
	if l.texts == nil {
		before := opts
		before.Moment.Applied = time.Time{}
		unknown, diags := l.Source.Evaluate(before)
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
	l.values, l.queue, l.rest = values, nil, map[schema.Address]schema.Job{}
	return l.whole(doc, values.Config())
}

func (l *Late) whole(doc *state.Document, cfg *schema.Config) (*schema.Desired, error) {
	l.read = l.read.anew(doc, cfg, l.values)
	l.enqueue(cfg.Desired.Jobs)
	return l.reworded(doc)
}

// enqueue has the texts of jobs compared, in place of queued ones. A job that waits
// already keeps its turn: also where values change again and again, each gets one.
func (l *Late) enqueue(jobs []schema.Job) {
	turns := make(map[schema.Address]int, len(l.queue))
	for i := range l.queue {
		turns[l.queue[i].Addr] = i
	}
	for i := range jobs {
		addr := jobs[i].Addr
		if _, waits := l.texts[addr]; !waits {
			continue
		}
		delete(l.rest, addr)
		if at, queued := turns[addr]; queued {
			l.queue[at] = jobs[i]
			continue
		}
		turns[addr] = len(l.queue)
		l.queue = append(l.queue, jobs[i])
	}
}

// reworded is what is desired with the texts of jobs that wait for values as they
// are now, and those of jobs that rest no more, nil if those are what doc has. It
// looks until a share of them is different.
func (l *Late) reworded(doc *state.Document) (*schema.Desired, error) {
	var risen []schema.Job
	for addr := range l.rest {
		if !rests(doc.Jobs[addr]) {
			risen = append(risen, l.rest[addr])
		}
	}
	if len(risen) > 0 {
		slices.SortFunc(risen, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
		l.enqueue(risen)
	}
	var changed []schema.Job
	looked := 0
	for ; looked < len(l.queue) && len(changed) < share; looked++ {
		job := &l.queue[looked]
		if rests(doc.Jobs[job.Addr]) {
			l.rest[job.Addr] = *job
			continue
		}
		next, differs, err := l.texted(doc, job)
		if err != nil {
			return nil, err
		}
		if differs {
			changed = append(changed, next)
		}
	}
	if l.queue = l.queue[looked:]; len(l.queue) == 0 {
		l.queue = nil
	}
	if len(changed) == 0 {
		return nil, nil
	}
	desired, err := doc.Desired.Refined(changed, l.Sealer)
	return &desired, err
}

// texted is a job as doc desires it with the texts that it has now, and whether
// that makes a difference.
func (l *Late) texted(doc *state.Document, job *schema.Job) (next schema.Job, differs bool, err error) {
	at, declared := slices.BinarySearchFunc(doc.Desired.Jobs, job.Addr, func(j schema.Job, a schema.Address) int { return j.Addr.Compare(a) })
	if !declared {
		return next, false, nil
	}
	now, err := schema.Desired{Jobs: []schema.Job{*job}}.Seal(l.Sealer)
	if err != nil {
		return next, false, err
	}
	texts := l.texts[job.Addr]
	next, differs = texts.over(&doc.Desired.Jobs[at], &now.Jobs[0])
	return next, differs, nil
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
	if differs {
		next.Sensitive = schema.JoinTexts(job.Sensitive, now.Sensitive)
	}
	return next, differs
}

func replaces(now, was schema.Text) bool { return !now.IsUnknown() && now != was }
