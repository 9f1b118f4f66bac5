package decode

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// part decodes one part of a job from some of the attributes and blocks. A part
// whose expressions do not refer to an instance is decoded once for all of them.
type part struct {
	attrs  []string
	blocks []string
	decode func(*JobDecoder, *schema.Job)
	// alike says that it evaluates the same expressions for each instance, and does nothing else
	// that others see but report mistakes.
	alike bool
}

func parts() []part {
	return []part{
		{attrs: []string{"command", "args"}, decode: (*JobDecoder).Command, alike: true},
		{attrs: []string{"namespace"}, decode: (*JobDecoder).jobNamespace},
		{blocks: []string{"resources"}, decode: (*JobDecoder).Resources},
		{blocks: []string{"lifecycle"}, decode: (*JobDecoder).jobLifecycle},
		{blocks: []string{"environment", language.ActorBlock}, decode: (*JobDecoder).environment},
		{blocks: []string{"retries", "restart"}, decode: (*JobDecoder).Retries},
		{blocks: []string{"schedule"}, decode: (*JobDecoder).schedule},
		{blocks: []string{"before_stop"}, decode: (*JobDecoder).beforeStop},
		{blocks: []string{"health_check", "resources"}, decode: (*JobDecoder).HealthCheck}, // its port is one of resources
		{
			attrs:  []string{"stop_grace", "timeout", "scheduling_timeout", "priority", "user", "band", "labels"},
			blocks: []string{"resources"}, // whose provider the labels must suit
			decode: (*JobDecoder).JobSettings,
		},
	}
}

func (p part) perInstance(b *configs.Block) bool {
	found := false
	visit := func(x *configs.Expression) { found = found || x.PerInstance }
	for _, name := range p.attrs {
		if x := b.Attr(name); x != nil {
			visit(x)
		}
	}
	for _, name := range p.blocks {
		b.Child(name).Walk(visit)
	}
	return found
}

// JobDecoder decodes the parts of a job or service. Where they refer to no instance, it
// decodes them for all instances at once.
type JobDecoder struct {
	*Decoder
	decl     *configs.Declaration
	instance eval.RepetitionData // nil: all
}

// Job decodes the parts of a job or service for one instance; nil is for all.
func (e *Decoder) Job(decl *configs.Declaration, instance eval.RepetitionData) *JobDecoder {
	return &JobDecoder{Decoder: e, decl: decl, instance: instance}
}

// Jobs decodes the instances of a job or service. What does not depend on an
// instance is decoded even where there is none, for its mistakes.
func (e *Decoder) Jobs(decl *configs.Declaration) []schema.Job {
	if decl.Block.HasDynamics() {
		return e.dynamicJobs(decl)
	}
	var varying []part
	template := schema.Job{DependsOn: decl.DependsOn, Uses: decl.Uses}
	all := e.Job(decl, nil)
	for _, p := range parts() {
		if p.perInstance(decl.Block) {
			varying = append(varying, p)
			continue
		}
		p.decode(all, &template)
		if p.perInstance(decl.Block) { // as its evaluation has shown
			varying = append(varying, p)
		}
	}
	jobs := make([]schema.Job, len(decl.Instances))
	eachInstance(e, decl, varying, func(e *Decoder, i int) {
		jobs[i] = template
		jobs[i].Addr = e.Global(decl.Instances[i].Addr(decl.Addr))
		if len(varying) == 0 {
			return
		}
		one := e.Job(decl, eval.RepetitionData(decl.Instances[i].Values()))
		for _, p := range varying {
			p.decode(one, &jobs[i])
		}
	})
	nameActors(decl.Block, jobs)
	return jobs
}

// dynamicJobs decodes instances whose blocks are made for each by itself.
func (e *Decoder) dynamicJobs(decl *configs.Declaration) []schema.Job {
	jobs := make([]schema.Job, len(decl.Instances))
	for i, instance := range decl.Instances {
		jobs[i] = schema.Job{Addr: e.Global(instance.Addr(decl.Addr)), DependsOn: decl.DependsOn, Uses: decl.Uses}
		one := *decl
		s := eval.RepetitionData(instance.Values())
		var ok bool
		if one.Block, ok = e.Expanded(decl.Block, s); !ok {
			continue
		}
		expanded := e.Job(&one, s)
		for _, p := range parts() {
			p.decode(expanded, &jobs[i])
		}
		nameActors(one.Block, jobs[i:i+1])
	}
	return jobs
}

// Command decodes the command and its arguments.
func (e *JobDecoder) Command(j *schema.Job) {
	x := e.decl.Block.Attr("command")
	if x == nil {
		e.withoutCommand(j)
		return
	}
	out := e.Eval(x, e.instance)
	j.Command = textsOf(e.Decoder, x, out)
	if out.OK && out.Value.IsKnown() && (out.Value.IsNull() || j.Command != nil && emptyCommand(j.Command)) {
		e.ErrorAt(x.Expr.Range(), "Invalid value for command", "The command has no program. Write one, such as [\"python\", \"-m\", \"train\"].")
	}
	if args := e.decl.Block.Attr("args"); args != nil {
		j.Command = slices.Concat(j.Command, e.texts(e.instance, args))
	}
}

func emptyCommand(words []schema.Text) bool { return len(words) == 0 || words[0] == schema.Plain("") }

// withoutCommand gives a service that has no command the one that hosts its
// actor, or reports that it needs either.
func (e *JobDecoder) withoutCommand(j *schema.Job) {
	args := e.decl.Block.Attr("args")
	switch {
	case e.decl.Block.Child(language.ActorBlock) != nil && args != nil:
		e.ErrorAt(args.Range, "Arguments without a command", "args are appended to command, and this service has none. What the constructor of its actor is given stands in the actor block: actor { args = { … } }.")
	case e.decl.Block.Child(language.ActorBlock) != nil:
		j.Command = hostCommand()
	case e.decl.Addr.Kind == schema.KindActorService:
		e.ErrorAt(e.decl.Block.Range(), "Missing attribute", "An actor_service needs a block actor { class = \"package.module:Class\" }, or the attribute \"command\" (list of strings): the program and its arguments.")
	}
}

func (e *JobDecoder) jobNamespace(j *schema.Job) {
	j.Namespace = e.Global(e.decl.Addr).Scoped()
	if e.decl.Group != nil {
		j.Namespace = e.groups[e.decl.Group.Addr.Name].Namespace
	}
	if name, ok := e.referenceTo(e.instance, e.decl.Block.Attr("namespace"), schema.KindNamespace); ok {
		j.Namespace = name
	}
}

func (e *JobDecoder) jobLifecycle(j *schema.Job) {
	j.Lifecycle = e.lifecycle(e.decl)
}

func (e *JobDecoder) environment(j *schema.Job) {
	e.statedEnvironment(j)
	e.actor(j)
}

func (e *JobDecoder) statedEnvironment(j *schema.Job) {
	b := given(e.Decoder, e.instance, e.decl.Block.Child("environment"))
	if b == nil {
		return
	}
	env := schema.Environment{
		Image: eval.Get(e, e.instance, b.Attr("image"), as.NotEmpty, ""),
		Env:   e.TextMap(e.instance, b.Attr("env")),
	}
	if env.Image != "" {
		e.checkImage(b.Attr("image"), j.Resources.Provider)
	}
	uv := b.Child("uv")
	if uv != nil {
		env.UV = &schema.UV{
			Extras: eval.Get(e, e.instance, uv.Attr("extras"), as.StringList, nil),
			Groups: eval.Get(e, e.instance, uv.Attr("groups"), as.StringList, nil),
			Python: eval.Get(e, e.instance, uv.Attr("python"), as.NotEmpty, ""),
		}
	}
	if env.Image != "" && uv != nil && j.Resources.Provider == schema.ProviderGCP {
		e.ErrorAt(uv.Range(), "Image and uv", "A container brings its own Python: install what the job needs into the image, or remove image to have uv install it on the host.")
	}
	project, hasProject := eval.Lookup(e, e.instance, b.Attr("project"), as.NotEmpty, "")
	switch {
	case hasProject:
		env.Project = e.Absolute(project)
		e.checkProject(b.Attr("project"), env.Project, uv != nil)
	case uv != nil && b.Attr("project") == nil:
		e.ErrorAt(uv.Range(), "uv without a project", "uv installs the packages of a project's uv.lock: add project = \"DIR\" to the environment, the directory with pyproject.toml and uv.lock.")
	}
	j.Environment = env
}

// Retries decodes how often a job or a replica is started again.
func (e *JobDecoder) Retries(j *schema.Job) {
	budget := as.WholeNumber(schema.Unlimited, math.MaxInt32)
	if e.decl.Addr.Kind == schema.KindActorService {
		b := e.decl.Block.Child("restart")
		limit := eval.Get(e, e.instance, b.Attr("max"), budget, schema.Unlimited)
		on := eval.Get(e, e.instance, b.Attr("on"), as.OneOf("failure", "always"), "failure")
		j.Retries = schema.Retries{Failure: limit, Preemption: limit, OnSuccess: on == "always"}
		return
	}
	b := e.decl.Block.Child("retries")
	j.Retries = schema.Retries{
		Failure:    eval.Get(e, e.instance, b.Attr("failure"), budget, 0),
		Preemption: eval.Get(e, e.instance, b.Attr("preemption"), budget, 100),
	}
}

// HealthCheck decodes the health check; that of an actor is implied.
func (e *JobDecoder) HealthCheck(j *schema.Job) {
	b := given(e.Decoder, e.instance, e.decl.Block.Child("health_check"))
	if b == nil {
		if e.decl.Block.Child(language.ActorBlock) != nil {
			j.HealthCheck = actorHealth()
		}
		return
	}
	h := schema.Health{
		HTTP:        eval.Get(e, e.instance, b.Attr("http"), httpPath, ""),
		TCP:         eval.Get(e, e.instance, b.Attr("tcp"), asTrue, false),
		Exec:        eval.Get(e, e.instance, b.Attr("exec"), checkCommand, nil),
		Port:        eval.Get(e, e.instance, b.Attr("port"), as.PortName, ""),
		Interval:    eval.Get(e, e.instance, b.Attr("interval"), as.PositiveDuration, schema.Duration(10*time.Second)),
		Timeout:     eval.Get(e, e.instance, b.Attr("timeout"), as.PositiveDuration, schema.Duration(5*time.Second)),
		Threshold:   eval.Get(e, e.instance, b.Attr("threshold"), as.WholeNumber(1, math.MaxInt32), 3),
		StartPeriod: eval.Get(e, e.instance, b.Attr("start_period"), as.Duration, 0),
	}
	e.checkHealth(b, &h, j.Resources.Ports)
	j.HealthCheck = &h
}

// JobSettings decodes what stands in the job block itself.
func (e *JobDecoder) JobSettings(j *schema.Job) {
	b := e.decl.Block
	j.StopGrace = eval.Get(e, e.instance, b.Attr("stop_grace"), as.Duration, schema.Duration(10*time.Second))
	j.Timeout = eval.Get(e, e.instance, b.Attr("timeout"), as.Duration, 0)
	j.SchedulingTimeout = eval.Get(e, e.instance, b.Attr("scheduling_timeout"), as.PositiveDuration, 0)
	j.User = eval.Get(e, e.instance, b.Attr("user"), as.NotEmpty, "")
	j.Priority = eval.Get(e, e.instance, b.Attr("priority"), as.WholeNumber(math.MinInt32, math.MaxInt32), 0)
	band := eval.Get(e, e.instance, b.Attr("band"), as.OneOf(schema.BandProduction, schema.BandInteractive, schema.BandBatch), schema.BandInteractive)
	if band != schema.BandInteractive { // the zero Band is interactive
		j.Band = band
	}
	asLabels := as.StringMap
	if j.Resources.Provider == schema.ProviderGCP {
		asLabels = cloudLabels
	}
	j.Labels = eval.Get(e, e.instance, b.Attr("labels"), asLabels, nil)
}

func (e *Decoder) jobGroup(decl *configs.Declaration) schema.JobGroup {
	b := decl.Block
	g := schema.JobGroup{
		Addr:       e.Global(decl.Addr),
		Namespace:  e.Global(decl.Addr).Scoped(),
		SameRegion: eval.Get(e, nil, b.Attr("same_region"), as.Bool, true),
		SameZone:   eval.Get(e, nil, b.Attr("same_zone"), as.Bool, false),
	}
	if name, ok := e.referenceTo(nil, b.Attr("namespace"), schema.KindNamespace); ok {
		g.Namespace = name
	}
	if len(decl.Members) == 0 {
		e.ErrorAt(b.Range(), "Empty block", "A job_group places jobs together: put job, actor_service and reservation blocks into it, or remove it.")
	}
	return g
}

// Resources decodes what a job runs on. With a reservation, the shape is the
// reservation's.
func (e *JobDecoder) Resources(j *schema.Job) {
	b := given(e.Decoder, e.instance, e.decl.Block.Child("resources"))
	r := schema.Resources{
		Slices: eval.Get(e, e.instance, b.Attr("slices"), as.WholeNumber(1, 100_000), 1),
		Ports:  eval.Get(e, e.instance, b.Attr("ports"), as.PortList, nil),
	}
	if e.decl.Block.Child(language.ActorBlock) != nil {
		r.Ports = schema.WithActorPort(r.Ports)
	}
	r.Ports = slices.SortedFunc(slices.Values(r.Ports), func(a, c schema.Port) int { return cmp.Compare(a.Name, c.Name) })
	if name, ok := e.referenceTo(e.instance, b.Attr("reservation"), schema.KindReservation); ok {
		e.fromReservation(b, &r, name)
		j.Resources = r
		return
	}
	if b.Attr("reservation") != nil {
		j.Resources = r
		return // wrong, and reported
	}
	r.Provider = e.provider(e.instance, b.Attr("provider"))
	r.TPU = e.TPU(e.instance, b.Attr("tpu"))
	r.GPU = e.GPU(e.instance, b.Child("gpu"))
	e.Accelerators(e.instance, b, &r)
	r.CPU = eval.Get(e, e.instance, b.Attr("cpu"), as.Cores, 0)
	r.Memory = eval.Get(e, e.instance, b.Attr("memory"), as.Bytes, 0)
	r.Disk = eval.Get(e, e.instance, b.Attr("disk"), as.Bytes, 0)
	r.MachineType = eval.Get(e, e.instance, b.Attr("machine_type"), as.NotEmpty, "")
	r.Zones = eval.Get(e, e.instance, b.Attr("zones"), as.StringList, nil)
	r.Regions = eval.Get(e, e.instance, b.Attr("regions"), as.StringList, nil)
	e.WarnOfZones(b.Attr("zones"), r.Zones)
	e.WarnOfRegions(b.Attr("regions"), r.Regions)
	e.checkShape(b, &r)
	e.checkPlaced(e.decl.Block.Range(), b, &r)
	var cloud schema.CloudSpec
	if r.Provider == schema.ProviderGCP {
		cloud = e.Whole.GCP.Cloud
	}
	e.cloud(e.instance, b, &cloud)
	settleAlternatives(e.Reporter, b, &cloud, &r)
	if r.Provider == schema.ProviderGCP {
		r.Cloud = cloud
	}
	if e.Options.Local {
		r.MachineType, r.Zones, r.Regions = "", nil, nil
	}
	if r.TPU == "" && r.CPU == 0 && r.MachineType == "" && b.Attr("tpu") == nil && b.Attr("accelerators") == nil && b.Child("gpu") == nil {
		r.CPU = 1
	}
	r.Preemptible = eval.Get(e, e.instance, b.Attr("preemptible"), as.Bool, r.TPU != "" || r.GPU.Count > 0)
	j.Resources = r
}

// portNames lists ports and their fixed numbers, as a health check may name them.
func portNames(ports []schema.Port) []string {
	names := map[string]bool{}
	for _, p := range ports {
		names[p.Name] = true
		if p.Number != 0 {
			names[strconv.Itoa(p.Number)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
