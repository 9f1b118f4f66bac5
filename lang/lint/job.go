package lint

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// jobLint has patterns of jobs that keep checkpoints, of jobs that run alone, and of those written for a shell.
type jobLint struct {
	*eval.Session
	keeps *regexp.Regexp // of an argument, or the name or value of a variable
	alone *regexp.Regexp // of the command, its arguments with spaces between
	env   *regexp.Regexp // of an argument with a variable of the environment
}

// lintJobs warns of jobs, for all instances of one by the first.
func lintJobs(s *eval.Session, jobs []schema.Job) {
	lint := jobLint{
		Session: s,
		keeps:   regexp.MustCompile(`(?i)checkpoint|ckpt|resume|restore|[a-z0-9]+://[^/]`),
		env:     regexp.MustCompile(`^[^\s'"{}]*(\$[A-Z_][A-Z0-9_]*|\$\{[A-Z_][A-Z0-9_]*\})[^\s'"{}]*$`),
		alone:   regexp.MustCompile(`(?:^| )(--?(?:num[-_]processes|num[-_]hosts|num[-_]nodes|nnodes|world[-_]size)[= ]1)(?: |$)`),
	}
	seen := map[schema.Address]bool{}
	for i := range jobs {
		j := &jobs[i]
		if s.Canceled() {
			return
		}
		if seen[j.Addr.Base()] {
			continue
		}
		seen[j.Addr.Base()] = true
		e, decl := s.Declared(j.Addr)
		lint.hosts(e, decl, j)
		lint.words(e, decl, j)
		if j.Addr.Kind == schema.KindJob && j.Resources.Accelerator() != "" && j.Resources.Preemptible && meantFor(e, decl, j) == schema.ProviderGCP {
			lint.preemption(e, decl, j)
		}
	}
}

// meantFor is the provider that the files name, which --local does not change.
func meantFor(e *eval.Evaluator, decl *configs.Declaration, j *schema.Job) schema.ProviderName {
	if name := j.Resources.Reservation; name != "" {
		of, pool := e.Declared(schema.ScopedAddress(schema.KindReservation, name))
		return stated(of, pool.Block.Attr("provider"))
	}
	return stated(e, decl.Block.Child("resources").Attr("provider"))
}

// stated is the provider that an attribute names, or what stands for it.
func stated(e *eval.Evaluator, x *configs.Expression) schema.ProviderName {
	if x != nil && !x.PerInstance {
		if out := e.Eval(x, nil); out.OK && !out.Value.IsNull() {
			if name, err := as.String(out.Value); err == nil {
				return e.Handed.On(schema.ProviderName(name))
			}
		}
	}
	declared := e.Root().Decls.Providers
	switch {
	case len(e.Handed) == 1:
		return e.Handed.On(slices.Sorted(maps.Keys(e.Handed))[0])
	case len(declared) == 1:
		return slices.Sorted(maps.Keys(declared))[0]
	}
	return schema.ProviderLocal
}

// preemption warns of a job on slices that may be taken away which begins
// again from nothing when they are, or ends.
func (l *jobLint) preemption(e *eval.Evaluator, decl *configs.Declaration, j *schema.Job) {
	resources := decl.Block.Child("resources")
	if j.Retries.Preemption == 0 {
		if resources.Attr("preemptible") == nil && j.Resources.Reservation == "" {
			e.WarnAt(decl.Block.Child("retries").Attr("preemption").Range, "Ends when it is preempted", fmt.Sprintf(
				"Slices with accelerators are preemptible by default, and with preemption = 0 the first time that they are taken away is the end of %s. Allow retries, write preemptible = false in resources, or preemptible = true there if the end is meant.", decl.Addr))
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
	e.WarnAt(decl.Block.Range(), "No checkpoints", fmt.Sprintf(
		"The slices of %s may be taken away, and nothing in its command or env names a place for checkpoints, so it may begin from nothing, %s. Hand it a place for checkpoints, such as env = { CHECKPOINT_DIR = \"gs://…\" }; if it needs none, write labels = { checkpoints = \"none\" }.",
		decl.Addr, often))
}

// keepsSomething reports whether a job's command or env names checkpoints or a bucket.
// What is not known because a variable has no value yet may be one.
func (l *jobLint) keepsSomething(j *schema.Job) bool {
	keeps := func(text schema.Text) bool {
		return l.keeps.MatchString(inClear(text)) || text.IsUnknown() && l.Options.Partial
	}
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

// inClear is a text, or the secret that it is; "" for one that is not known yet.
func inClear(t schema.Text) string {
	clear, err := t.Reveal(nil)
	if err != nil {
		return ""
	}
	return clear
}

// hosts warns of a gang whose tasks all get the arguments of an only
// one, or the same one.
func (l *jobLint) hosts(e *eval.Evaluator, decl *configs.Declaration, j *schema.Job) {
	tasks := mostTasks(&j.Resources)
	if tasks < 2 || j.Labels["hosts"] == "independent" {
		return
	}
	warn := func(x *configs.Expression, what, effect string) {
		e.WarnAt(x.Expr.Range(), "One host for many", fmt.Sprintf(
			"%s runs %d tasks, one for each host of its slices, and %s %s. Leave it out: every task finds its own value in its environment (docs/environment.md). If each host is to work for itself, write labels = { hosts = \"independent\" }.",
			decl.Addr, tasks, what, effect))
	}
	const alone, same = "makes each of them the only one", "gives all of them the same rank"
	for _, name := range slices.Sorted(maps.Keys(j.Environment.Env)) {
		value := j.Environment.Env[name]
		x := decl.Block.Child("environment").Attr("env")
		switch {
		case x == nil || value.IsSensitive() || value.IsUnknown():
		case slices.Contains([]string{"JAX_NUM_PROCESSES", "WORLD_SIZE", "NNODES"}, name) && inClear(value) == "1":
			warn(x, name+" = 1", alone)
		case slices.Contains([]string{"JAX_PROCESS_ID", "TPU_WORKER_ID", "CLOUD_TPU_TASK_ID", "NODE_RANK"}, name):
			warn(x, name, same)
		}
	}
	words := make([]string, 0, len(j.Command))
	for _, word := range j.Command {
		words = append(words, inClear(word))
	}
	if found := l.alone.FindStringSubmatch(strings.Join(words, " ")); found != nil {
		if x := decl.Block.Attr("command"); x != nil {
			warn(x, found[1], alone)
		}
	}
}

// mostTasks is how many tasks a job with accelerators has, of several alternatives on that
// with the most hosts; 0 without any.
func mostTasks(r *schema.Resources) int {
	most := 0
	for _, a := range r.Alternatives() {
		if shape, err := accelerators.Parse(a.TPU()); err == nil {
			most = max(most, shape.Hosts*r.Slices)
		} else if a != "" {
			most = max(most, r.Slices)
		}
	}
	return most
}

// lintReservations warns of pools that are held while jobs of the same shape get
// slices of their own.
func lintReservations(s *eval.Session, d *schema.Desired) {
	type shape struct {
		accelerator string
		provider    schema.ProviderName
	}
	undrawn := map[shape]schema.Address{} // the first job of each
	for i := len(d.Jobs) - 1; i >= 0; i-- {
		if r := &d.Jobs[i].Resources; r.Reservation == "" && r.Accelerator() != "" && len(r.Accelerators) == 0 {
			undrawn[shape{string(r.Accelerator()), r.Provider}] = d.Jobs[i].Addr
		}
	}
	used := map[*configs.Module]map[configs.Symbol]bool{}
	for i := range d.Reservations {
		r := &d.Reservations[i]
		e, decl := s.Declared(r.Addr)
		if used[e.Module] == nil {
			used[e.Module] = usedNames(e.Module)
		}
		kind := cmp.Or(r.Max.TPU, r.Max.GPU.Kind())
		other, found := undrawn[shape{kind, r.Provider}]
		if found && !used[e.Module][configs.SymbolOf(decl.Addr)] {
			e.WarnAt(decl.Block.Range(), "Reservation without use", fmt.Sprintf(
				"%s holds slices of %s and nothing draws from them, while %s gets slices of that type of its own. Write reservation = %s in its resources, or remove the reservation; an output that names it says that others draw from it.",
				r.Addr, kind, other.Base(), decl.Addr))
		}
	}
}
