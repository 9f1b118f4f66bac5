package schema

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// jobLint is what jobs are told by that keep something, or are alone.
type jobLint struct {
	*session
	keeps *regexp.Regexp // of a word, or the name or value of a variable
	alone *regexp.Regexp // of the command, its words with spaces between
}

// lintJobs warns of jobs, for all instances of one by the first.
func (s *session) lintJobs(jobs []Job) {
	lint := jobLint{
		session: s,
		keeps:   regexp.MustCompile(`(?i)checkpoint|ckpt|resume|restore|[a-z0-9]+://[^/]`),
		alone:   regexp.MustCompile(`(?:^| )(--?(?:num[-_]processes|num[-_]hosts|num[-_]nodes|nnodes|world[-_]size)[= ]1)(?: |$)`),
	}
	seen := map[Address]bool{}
	for i := range jobs {
		j := &jobs[i]
		if seen[j.Addr.Base()] {
			continue
		}
		seen[j.Addr.Base()] = true
		e, decl := s.declared(j.Addr)
		lint.hosts(e, decl, j)
		if j.Addr.Kind == KindJob && j.Resources.TPU != "" && j.Resources.Preemptible && e.meantFor(decl, j) == ProviderGCP {
			lint.preemption(e, decl, j)
		}
	}
}

// meantFor is the provider that the files name, which --local does not change.
func (e *evaluator) meantFor(decl *declaration, j *Job) ProviderName {
	if name := j.Resources.Reservation; name != "" {
		of, pool := e.declared(ScopedAddress(KindReservation, name))
		return of.stated(pool.block.attr("provider"))
	}
	return e.stated(decl.block.child("resources").attr("provider"))
}

// stated is the provider that an attribute names, or what stands for it.
func (e *evaluator) stated(x *expression) ProviderName {
	if x != nil && !x.perInstance {
		if out := e.eval(x, nil); out.ok && !out.val.IsNull() {
			if name, err := asString(out.val); err == nil {
				return e.handedOn(ProviderName(name))
			}
		}
	}
	declared := e.root().decls.providers
	switch {
	case len(e.handed) == 1:
		return e.handedOn(sortedKeys(e.handed)[0])
	case len(declared) == 1:
		return sortedKeys(declared)[0]
	}
	return ProviderLocal
}

// preemption warns of a job on slices that may be taken away which begins
// again from nothing when they are, or ends.
func (l *jobLint) preemption(e *evaluator, decl *declaration, j *Job) {
	resources := decl.block.child("resources")
	if j.Retries.Preemption == 0 {
		if resources.attr("preemptible") == nil && j.Resources.Reservation == "" {
			e.warnAt(decl.block.child("retries").attr("preemption").rng, "Ends when it is preempted", fmt.Sprintf(
				"TPU slices are preemptible unless resources say otherwise, and with preemption = 0 the first time that they are taken away is the end of %s. Allow retries, write preemptible = false in resources, or preemptible = true there if the end is meant.", decl.addr))
		}
		return
	}
	if j.Labels["checkpoints"] != "" || l.keepsSomething(j) {
		return
	}
	often := "again and again"
	if n := j.Retries.Preemption; n > 0 {
		often = fmt.Sprintf("up to %d times", n)
	}
	e.warnAt(decl.block.rng(), "No checkpoints", fmt.Sprintf(
		"The slices of %s may be taken away, and nothing in its command or env says where it keeps what it has done, so it may begin from nothing, %s. Hand it a place for checkpoints, such as env = { CHECKPOINT_DIR = \"gs://…\" }; if it needs none, write labels = { checkpoints = \"none\" }.",
		decl.addr, often))
}

// keepsSomething reports whether a job is told of checkpoints or of a bucket.
// What is not known because a variable has no value yet may be one.
func (l *jobLint) keepsSomething(j *Job) bool {
	keeps := func(text Text) bool { return l.keeps.MatchString(text.value) || text.IsUnknown() && l.opts.Partial }
	if slices.ContainsFunc(j.Command, keeps) {
		return true
	}
	for name, value := range j.Environment.Env {
		if l.keeps.MatchString(name) || keeps(value) {
			return true
		}
	}
	return false
}

// hosts warns of a gang of several tasks that are all told to be the only
// one, or the same one.
func (l *jobLint) hosts(e *evaluator, decl *declaration, j *Job) {
	shape, err := ParseAccelerator(j.Resources.TPU)
	if err != nil || shape.Hosts*j.Resources.Slices < 2 || j.Labels["hosts"] == "independent" {
		return
	}
	tasks := shape.Hosts * j.Resources.Slices
	warn := func(x *expression, what, effect string) {
		e.warnAt(x.expr.Range(), "One host for many", fmt.Sprintf(
			"%s runs %d tasks, one for each host of its slices, and %s %s. Leave it out: every task finds its own value in its environment (docs/environment.md). If each host is to work for itself, write labels = { hosts = \"independent\" }.",
			decl.addr, tasks, what, effect))
	}
	const alone, same = "tells each of them that it is alone", "tells all of them that they are the same one"
	for _, name := range sortedKeys(j.Environment.Env) {
		value := j.Environment.Env[name]
		x := decl.block.child("environment").attr("env")
		switch {
		case x == nil || value.form != textPlain:
		case slices.Contains([]string{"JAX_NUM_PROCESSES", "WORLD_SIZE", "NNODES"}, name) && value.value == "1":
			warn(x, name+" = 1", alone)
		case slices.Contains([]string{"JAX_PROCESS_ID", "TPU_WORKER_ID", "CLOUD_TPU_TASK_ID", "NODE_RANK"}, name):
			warn(x, name, same)
		}
	}
	words := make([]string, 0, len(j.Command))
	for _, word := range j.Command {
		words = append(words, word.value)
	}
	if found := l.alone.FindStringSubmatch(strings.Join(words, " ")); found != nil {
		if x := decl.block.attr("command"); x != nil {
			warn(x, found[1], alone)
		}
	}
}

// lintReservations warns of pools that are held while jobs of the same shape get
// slices of their own.
func (s *session) lintReservations(d *Desired) {
	type shape struct {
		tpu      string
		provider ProviderName
	}
	undrawn := map[shape]Address{} // the first job of each
	for i := len(d.Jobs) - 1; i >= 0; i-- {
		if r := &d.Jobs[i].Resources; r.Reservation == "" && r.TPU != "" {
			undrawn[shape{r.TPU, r.Provider}] = d.Jobs[i].Addr
		}
	}
	used := map[*module]map[symbol]bool{}
	for i := range d.Reservations {
		r := &d.Reservations[i]
		e, decl := s.declared(r.Addr)
		if used[e.mod] == nil {
			used[e.mod] = e.mod.usedNames()
		}
		other, found := undrawn[shape{r.Max.TPU, r.Provider}]
		if found && !used[e.mod][thing(decl.addr)] {
			e.warnAt(decl.block.rng(), "Reservation without use", fmt.Sprintf(
				"%s holds slices of %s and nothing draws from them, while %s gets slices of that type of its own. Write reservation = %s in its resources, or remove the reservation; an output that names it says that others draw from it.",
				r.Addr, r.Max.TPU, other.Base(), decl.addr))
		}
	}
}
