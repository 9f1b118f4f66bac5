package schema

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// part decodes one part of a job from some of the attributes and blocks. A part
// whose expressions do not refer to an instance is decoded once for all of them.
type part struct {
	attrs  []string
	blocks []string
	decode func(*evaluator, *declaration, scope, *Job)
}

func parts() []part {
	return []part{
		{attrs: []string{"command", "args"}, decode: (*evaluator).command},
		{attrs: []string{"namespace"}, decode: (*evaluator).jobNamespace},
		{blocks: []string{"resources"}, decode: (*evaluator).resources},
		{blocks: []string{"lifecycle"}, decode: (*evaluator).jobLifecycle},
		{blocks: []string{"environment", actorBlock}, decode: (*evaluator).environment},
		{blocks: []string{"retries", "restart"}, decode: (*evaluator).retries},
		{blocks: []string{"health_check", "resources"}, decode: (*evaluator).healthCheck}, // its port is one of resources
		{
			attrs:  []string{"stop_grace", "timeout", "scheduling_timeout", "priority", "user", "band", "labels"},
			blocks: []string{"resources"}, // whose provider the labels must suit
			decode: (*evaluator).jobSettings,
		},
	}
}

func (p part) perInstance(b *block) bool {
	found := false
	visit := func(x *expression) { found = found || x.perInstance }
	for _, name := range p.attrs {
		if x := b.attr(name); x != nil {
			visit(x)
		}
	}
	for _, name := range p.blocks {
		b.child(name).walk(visit)
	}
	return found
}

// jobs decodes the instances of a job or service. What does not depend on an
// instance is decoded even where there is none, for its mistakes.
func (e *evaluator) jobs(decl *declaration) []Job {
	if decl.block.hasDynamics() {
		return e.dynamicJobs(decl)
	}
	var varying []part
	template := Job{DependsOn: decl.dependsOn, Uses: decl.uses}
	for _, p := range parts() {
		if p.perInstance(decl.block) {
			varying = append(varying, p)
			continue
		}
		p.decode(e, decl, nil, &template)
	}
	jobs := make([]Job, len(decl.instances))
	for i, instance := range decl.instances {
		jobs[i] = template
		jobs[i].Addr = e.global(instance.addr(decl.addr))
		if len(varying) == 0 {
			continue
		}
		s := scope(instance.values())
		for _, p := range varying {
			p.decode(e, decl, s, &jobs[i])
		}
	}
	nameActors(decl.block, jobs)
	return jobs
}

// dynamicJobs decodes instances whose blocks are made for each by itself.
func (e *evaluator) dynamicJobs(decl *declaration) []Job {
	jobs := make([]Job, len(decl.instances))
	for i, instance := range decl.instances {
		jobs[i] = Job{Addr: e.global(instance.addr(decl.addr)), DependsOn: decl.dependsOn, Uses: decl.uses}
		one := *decl
		s := scope(instance.values())
		var ok bool
		if one.block, ok = e.expanded(decl.block, s); !ok {
			continue
		}
		for _, p := range parts() {
			p.decode(e, &one, s, &jobs[i])
		}
		nameActors(one.block, jobs[i:i+1])
	}
	return jobs
}

func (e *evaluator) command(decl *declaration, s scope, j *Job) {
	x := decl.block.attr("command")
	if x == nil {
		e.withoutCommand(decl, j)
		return
	}
	j.Command = e.texts(s, x)
	if out := e.eval(x, s); out.ok && out.val.IsKnown() && (out.val.IsNull() || j.Command != nil && emptyCommand(j.Command)) {
		e.errorAt(x.expr.Range(), "Invalid value for command", "The command has no program. Write one, such as [\"python\", \"-m\", \"train\"].")
	}
	j.Command = slices.Concat(j.Command, e.texts(s, decl.block.attr("args")))
}

func emptyCommand(words []Text) bool { return len(words) == 0 || words[0] == Plain("") }

// withoutCommand gives a service that has no command the one that hosts its
// actor, or says that it needs either.
func (e *evaluator) withoutCommand(decl *declaration, j *Job) {
	args := decl.block.attr("args")
	switch {
	case decl.block.child(actorBlock) != nil && args != nil:
		e.errorAt(args.rng, "Arguments without a command", "args are appended to command, and this service has none. What the constructor of its actor is given stands in the actor block: actor { args = { … } }.")
	case decl.block.child(actorBlock) != nil:
		j.Command = hostCommand()
	case decl.addr.Kind == KindActorService:
		e.errorAt(decl.block.rng(), "Missing attribute", "An actor_service needs a block actor { class = \"package.module:Class\" }, or the attribute \"command\" (list of strings): the program and its arguments.")
	}
}

func (e *evaluator) jobNamespace(decl *declaration, s scope, j *Job) {
	j.Namespace = e.global(decl.addr).Scoped()
	if decl.group != nil {
		j.Namespace = e.groups[decl.group.addr.Name].Namespace
	}
	if name, ok := e.referenceTo(s, decl.block.attr("namespace"), KindNamespace); ok {
		j.Namespace = name
	}
}

func (e *evaluator) jobLifecycle(decl *declaration, _ scope, j *Job) { j.Lifecycle = e.lifecycle(decl) }

func (e *evaluator) environment(decl *declaration, s scope, j *Job) {
	e.statedEnvironment(decl, s, j)
	e.actor(decl, s, j)
}

func (e *evaluator) statedEnvironment(decl *declaration, s scope, j *Job) {
	b := decl.block.child("environment")
	if b == nil {
		return
	}
	env := Environment{
		Image: get(e, s, b.attr("image"), notEmpty, ""),
		Env:   e.textMap(s, b.attr("env")),
	}
	if env.Image != "" && (e.opts.Local || j.Resources.Provider == ProviderLocal) {
		e.warnOfImage(b.attr("image"))
	}
	uv := b.child("uv")
	if uv != nil {
		env.UV = &UV{
			Extras: get(e, s, uv.attr("extras"), stringList, nil),
			Groups: get(e, s, uv.attr("groups"), stringList, nil),
			Python: get(e, s, uv.attr("python"), notEmpty, ""),
		}
	}
	if env.Image != "" && uv != nil && j.Resources.Provider == ProviderGCP {
		e.errorAt(uv.rng(), "Image and uv", "A container brings its own Python: install what the job needs into the image, or remove image to have uv install it on the host.")
	}
	project, hasProject := lookup(e, s, b.attr("project"), notEmpty, "")
	switch {
	case hasProject:
		env.Project = e.absolute(project)
		e.checkProject(b.attr("project"), env.Project, uv != nil)
	case uv != nil && b.attr("project") == nil:
		e.errorAt(uv.rng(), "uv without a project", "uv installs what a project's uv.lock says: add project = \"DIR\" to the environment, the directory with pyproject.toml and uv.lock.")
	}
	j.Environment = env
}

func (e *evaluator) retries(decl *declaration, s scope, j *Job) {
	budget := wholeNumber(Unlimited, math.MaxInt32)
	if decl.addr.Kind == KindActorService {
		b := decl.block.child("restart")
		limit := get(e, s, b.attr("max"), budget, Unlimited)
		on := get(e, s, b.attr("on"), oneOf("failure", "always"), "failure")
		j.Retries = Retries{Failure: limit, Preemption: limit, OnSuccess: on == "always"}
		return
	}
	b := decl.block.child("retries")
	j.Retries = Retries{
		Failure:    get(e, s, b.attr("failure"), budget, 0),
		Preemption: get(e, s, b.attr("preemption"), budget, 100),
	}
}

func (e *evaluator) healthCheck(decl *declaration, s scope, j *Job) {
	b := decl.block.child("health_check")
	if b == nil {
		if decl.block.child(actorBlock) != nil {
			j.HealthCheck = actorHealth()
		}
		return
	}
	h := Health{
		HTTP:        get(e, s, b.attr("http"), httpPath, ""),
		TCP:         get(e, s, b.attr("tcp"), asTrue, false),
		Exec:        get(e, s, b.attr("exec"), checkCommand, nil),
		Port:        get(e, s, b.attr("port"), portName, ""),
		Interval:    get(e, s, b.attr("interval"), positiveDuration, Duration(10*time.Second)),
		Timeout:     get(e, s, b.attr("timeout"), positiveDuration, Duration(5*time.Second)),
		Threshold:   get(e, s, b.attr("threshold"), wholeNumber(1, math.MaxInt32), 3),
		StartPeriod: get(e, s, b.attr("start_period"), asDuration, 0),
	}
	e.checkHealth(b, &h, j.Resources.Ports)
	j.HealthCheck = &h
}

func (e *evaluator) jobSettings(decl *declaration, s scope, j *Job) {
	b := decl.block
	j.StopGrace = get(e, s, b.attr("stop_grace"), asDuration, Duration(10*time.Second))
	j.Timeout = get(e, s, b.attr("timeout"), asDuration, 0)
	j.SchedulingTimeout = get(e, s, b.attr("scheduling_timeout"), positiveDuration, 0)
	j.User = get(e, s, b.attr("user"), notEmpty, "")
	j.Priority = get(e, s, b.attr("priority"), wholeNumber(math.MinInt32, math.MaxInt32), 0)
	band := get(e, s, b.attr("band"), oneOf(BandProduction, BandInteractive, BandBatch), BandInteractive)
	if band != BandInteractive { // the zero Band is interactive
		j.Band = band
	}
	asLabels := stringMap
	if j.Resources.Provider == ProviderGCP {
		asLabels = cloudLabels
	}
	j.Labels = get(e, s, b.attr("labels"), asLabels, nil)
}

func (e *evaluator) jobGroup(decl *declaration) JobGroup {
	b := decl.block
	g := JobGroup{
		Addr:       e.global(decl.addr),
		Namespace:  e.global(decl.addr).Scoped(),
		SameRegion: get(e, nil, b.attr("same_region"), asBool, false),
		SameZone:   get(e, nil, b.attr("same_zone"), asBool, false),
	}
	if name, ok := e.referenceTo(nil, b.attr("namespace"), KindNamespace); ok {
		g.Namespace = name
	}
	if len(b.blocks[string(KindJob)]) == 0 {
		e.errorAt(b.rng(), "Empty block", "A job_group places jobs together: put job blocks into it, or remove it.")
	}
	return g
}

// resources decodes what a job runs on. With a reservation, the shape is the
// reservation's.
func (e *evaluator) resources(decl *declaration, s scope, j *Job) {
	b := decl.block.child("resources")
	r := Resources{
		Slices: get(e, s, b.attr("slices"), wholeNumber(1, 100_000), 1),
		Ports:  get(e, s, b.attr("ports"), portList, nil),
	}
	if decl.block.child(actorBlock) != nil {
		r.Ports = withActorPort(r.Ports)
	}
	r.Ports = slices.SortedFunc(slices.Values(r.Ports), func(a, c Port) int { return cmp.Compare(a.Name, c.Name) })
	if name, ok := e.referenceTo(s, b.attr("reservation"), KindReservation); ok {
		e.fromReservation(b, s, &r, name)
		j.Resources = r
		return
	}
	if b.attr("reservation") != nil {
		j.Resources = r
		return // wrong, and told
	}
	r.Provider = e.provider(s, b.attr("provider"))
	r.TPU = e.tpu(s, b.attr("tpu"))
	r.CPU = get(e, s, b.attr("cpu"), asCores, 0)
	r.Memory = get(e, s, b.attr("memory"), asBytes, 0)
	r.Disk = get(e, s, b.attr("disk"), asBytes, 0)
	r.MachineType = get(e, s, b.attr("machine_type"), notEmpty, "")
	r.Zones = get(e, s, b.attr("zones"), stringList, nil)
	r.Regions = get(e, s, b.attr("regions"), stringList, nil)
	e.warnOfZones(b.attr("zones"), r.Zones)
	e.warnOfRegions(b.attr("regions"), r.Regions)
	e.checkShape(b, &r)
	e.checkPlaced(decl.block, &r)
	cloud := e.gcp.Cloud
	e.cloud(s, b, &cloud)
	e.settleCloud(b, &cloud, r.TPU)
	if r.Provider == ProviderGCP {
		r.Cloud = cloud
	}
	if e.opts.Local {
		r.MachineType, r.Zones, r.Regions = "", nil, nil
	}
	if r.TPU == "" && r.CPU == 0 && r.MachineType == "" && b.attr("tpu") == nil {
		r.CPU = 1
	}
	r.Preemptible = get(e, s, b.attr("preemptible"), asBool, r.TPU != "")
	j.Resources = r
}

// portNames lists ports and their fixed numbers, as a health check may name them.
func portNames(ports []Port) []string {
	names := map[string]bool{}
	for _, p := range ports {
		names[p.Name] = true
		if p.Number != 0 {
			names[strconv.Itoa(p.Number)] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
