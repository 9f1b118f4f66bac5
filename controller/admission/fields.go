package admission

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/schema"
)

// callableCommand runs a pickled callable, which its agent puts where
// FRAY_CALLABLE says.
func callableCommand() []string { return []string{"python", "-m", "fray._callable"} }

// fields collects the attributes of a request in the words of the language.
// What is at its zero value is not stated.
type fields struct {
	list []langrequest.Field
}

func (f *fields) add(attr, path string, v cty.Value) {
	f.list = append(f.list, langrequest.Field{Attr: attr, Path: path, Value: v})
}

func (f *fields) text(attr, path, s string) {
	if s != "" {
		f.add(attr, path, cty.StringVal(s))
	}
}

func (f *fields) number(attr, path string, n int64) {
	if n != 0 {
		f.add(attr, path, cty.NumberIntVal(n))
	}
}

func (f *fields) duration(attr, path string, d *durationpb.Duration) {
	if d != nil {
		f.add(attr, path, cty.StringVal(d.AsDuration().String()))
	}
}

func (f *fields) words(attr, path string, words []string) {
	if len(words) > 0 {
		f.add(attr, path, tuple(words))
	}
}

func tuple(words []string) cty.Value {
	vals := make([]cty.Value, 0, len(words))
	for _, word := range words {
		vals = append(vals, cty.StringVal(word))
	}
	return cty.TupleVal(vals)
}

func (f *fields) table(attr, path string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	vals := make(map[string]cty.Value, len(m))
	for name, value := range m {
		vals[name] = cty.StringVal(value)
	}
	f.add(attr, path, cty.MapVal(vals))
}

// jobFields are the attributes of a job. What is inherited is not among them.
func jobFields(r *clusterapi.JobRequest) []langrequest.Field {
	f := &fields{}
	switch kind := r.GetEntrypoint().GetKind().(type) {
	case *clusterapi.Entrypoint_Command:
		f.add("command", "entrypoint.command.words", tuple(kind.Command.GetWords()))
	case *clusterapi.Entrypoint_Callable:
		f.words("command", "entrypoint.callable", callableCommand())
	}
	f.resources("resources", "resources", r.GetResources())
	if preemptible := r.GetResources(); preemptible != nil && preemptible.Preemptible != nil {
		f.add("resources.preemptible", "resources.preemptible", cty.BoolVal(preemptible.GetPreemptible()))
	}
	f.environment(r.GetEnvironment())
	f.number("retries.failure", "max_retries_failure", int64(r.GetMaxRetriesFailure()))
	if r.MaxRetriesPreemption != nil {
		f.add("retries.preemption", "max_retries_preemption", cty.NumberIntVal(int64(r.GetMaxRetriesPreemption())))
	}
	f.number("priority", "priority", int64(r.GetPriority()))
	f.duration("timeout", "timeout", r.GetTimeout())
	f.duration("scheduling_timeout", "scheduling_timeout", r.GetSchedulingTimeout())
	f.duration("stop_grace", "stop_grace", r.GetStopGrace())
	f.table("labels", "labels", r.GetLabels())
	f.healthCheck(r.GetHealthCheck())
	return f.list
}

func (f *fields) resources(attr, path string, r *clusterapi.Resources) {
	at := func(name string) (string, string) { return attr + "." + name, path + "." + name }
	put := func(name string, v cty.Value) {
		a, p := at(name)
		f.add(a, p, v)
	}
	for name, text := range map[string]string{"tpu": r.GetTpu(), "machine_type": r.GetMachineType(), "provider": r.GetProvider()} {
		if text != "" {
			put(name, cty.StringVal(text))
		}
	}
	f.gpu(attr+".gpu", path+".gpu", r.GetGpu())
	for name, n := range map[string]int64{"memory": r.GetMemory(), "disk": r.GetDisk(), "slices": int64(r.GetSlices())} {
		if n != 0 {
			put(name, cty.NumberIntVal(n))
		}
	}
	if r.GetCpu() != 0 {
		put("cpu", coresOf(r.GetCpu()))
	}
	for name, words := range map[string][]string{"regions": r.GetRegions(), "zones": r.GetZones()} {
		if len(words) > 0 {
			put(name, tuple(words))
		}
	}
	if ports := r.GetPorts(); len(ports) > 0 {
		vals := make(map[string]cty.Value, len(ports))
		for _, p := range ports {
			vals[p.GetName()] = cty.NumberIntVal(int64(p.GetNumber()))
		}
		put("ports", cty.MapVal(vals))
	}
	slices.SortFunc(f.list, func(a, b langrequest.Field) int { return strings.Compare(a.Attr, b.Attr) }) // maps have no order
}

// gpu states the GPUs of a machine. A block without attributes is one GPU of any type.
func (f *fields) gpu(attr, path string, g *clusterapi.Gpu) {
	if g == nil {
		return
	}
	f.text(attr+".type", path+".type", g.GetType())
	f.add(attr+".count", path+".count", cty.NumberIntVal(int64(cmp.Or(g.GetCount(), 1))))
}

// coresOf is a number of cores; what is no number is told where it is decoded.
func coresOf(cpu float64) cty.Value {
	if math.IsNaN(cpu) || math.IsInf(cpu, 0) {
		return cty.StringVal(fmt.Sprint(cpu))
	}
	return cty.NumberFloatVal(cpu)
}

func (f *fields) environment(e *clusterapi.Environment) {
	f.text("environment.image", "environment.image", e.GetImage())
	f.table("environment.env", "environment.env_vars", e.GetEnvVars())
	if uv := e.GetUv(); uv != nil {
		f.add("environment.uv.extras", "environment.uv.extras", tuple(uv.GetExtras()))
		f.words("environment.uv.groups", "environment.uv.groups", uv.GetGroups())
		f.text("environment.uv.python", "environment.uv.python", uv.GetPython())
	}
}

func (f *fields) healthCheck(h *clusterapi.HealthCheck) {
	if h == nil {
		return
	}
	f.text("health_check.http", "health_check.http", h.GetHttp())
	if h.GetTcp() {
		f.add("health_check.tcp", "health_check.tcp", cty.True)
	}
	f.words("health_check.exec", "health_check.exec", h.GetExec())
	f.text("health_check.port", "health_check.port", h.GetPort())
	f.duration("health_check.interval", "health_check.interval", h.GetInterval())
	f.duration("health_check.timeout", "health_check.timeout", h.GetTimeout())
	// A check of nothing is a mistake too, so that the block must be there.
	f.add("health_check.threshold", "health_check.threshold", thresholdOf(h))
}

func thresholdOf(h *clusterapi.HealthCheck) cty.Value {
	if h.GetThreshold() == 0 {
		return cty.NullVal(cty.Number)
	}
	return cty.NumberIntVal(int64(h.GetThreshold()))
}

// statedMistakes are what cannot be said in the words of the language.
func statedMistakes(path string, r *clusterapi.JobRequest) []langrequest.Mistake {
	var found []langrequest.Mistake
	wrong := func(field, summary, detail string) {
		found = append(found, langrequest.Mistake{Path: path + field, Summary: summary, Detail: detail})
	}
	if !schema.ValidLaunchName(r.GetName()) {
		wrong(".name", "Invalid name", fmt.Sprintf(
			"%q cannot name a job: a name is letters, digits and . _ - /, beginning and ending with a letter, a digit or an underscore, at most 200 in all.", r.GetName()))
	}
	seen := map[string]bool{}
	for i, p := range r.GetResources().GetPorts() {
		if seen[p.GetName()] {
			wrong(fmt.Sprintf(".resources.ports[%d].name", i), "Invalid value for ports", fmt.Sprintf("The port %q stands twice.", p.GetName()))
		}
		seen[p.GetName()] = true
	}
	if c := r.GetEntrypoint().GetCallable(); c != nil && c.GetSha256() == "" {
		wrong(".entrypoint.callable.sha256", "Missing attribute", "A callable is named by the SHA-256 of what was uploaded.")
	}
	if _, known := bandNames()[r.GetBand()]; !known && r.GetBand() != clusterapi.Band_BAND_UNSPECIFIED {
		wrong(".band", "Invalid value for band", fmt.Sprintf("There is no band %d: the bands are production, interactive and batch.", r.GetBand()))
	}
	if _, known := clusterapi.NameClash_name[int32(r.GetNameClash())]; !known {
		wrong(".name_clash", "Invalid value for name_clash", fmt.Sprintf("There is no %d: say error, keep or recreate.", r.GetNameClash()))
	}
	for _, d := range []struct {
		field string
		is    *durationpb.Duration
	}{
		{".timeout", r.GetTimeout()}, {".scheduling_timeout", r.GetSchedulingTimeout()}, {".stop_grace", r.GetStopGrace()},
		{".health_check.interval", r.GetHealthCheck().GetInterval()}, {".health_check.timeout", r.GetHealthCheck().GetTimeout()},
	} {
		if d.is != nil && d.is.CheckValid() != nil {
			wrong(d.field, "Invalid value for duration", "It is out of range, or its seconds and nanoseconds have different signs.")
		}
	}
	return found
}

// bandNames are the bands of the language. The interactive one is its zero.
func bandNames() map[clusterapi.Band]schema.Band {
	return map[clusterapi.Band]schema.Band{
		clusterapi.Band_BAND_PRODUCTION:  schema.BandProduction,
		clusterapi.Band_BAND_INTERACTIVE: "",
		clusterapi.Band_BAND_BATCH:       schema.BandBatch,
	}
}

// reservationFields are the attributes of a reservation.
func reservationFields(r *clusterapi.ReservationConfig) []langrequest.Field {
	f := &fields{}
	for _, end := range []struct {
		name string
		is   *clusterapi.Resources
	}{{"min", r.GetMin()}, {"max", r.GetMax()}} {
		f.text(end.name+".tpu", end.name+".tpu", end.is.GetTpu())
		f.gpu(end.name+".gpu", end.name+".gpu", end.is.GetGpu())
		if end.is.GetCpu() != 0 {
			f.add(end.name+".cpu", end.name+".cpu", coresOf(end.is.GetCpu()))
		}
		f.number(end.name+".memory", end.name+".memory", end.is.GetMemory())
		f.number(end.name+".disk", end.name+".disk", end.is.GetDisk())
		f.number(end.name+".slices", end.name+".slices", int64(end.is.GetSlices()))
	}
	f.text("provider", "max.provider", r.GetMax().GetProvider())
	f.words("zones", "max.zones", r.GetMax().GetZones())
	f.words("regions", "max.regions", r.GetMax().GetRegions())
	f.number("priority", "priority", int64(r.GetPriority()))
	ttl := r.GetTtl()
	if ttl == nil {
		ttl = durationpb.New(time.Hour)
	}
	f.duration("ttl", "ttl", ttl)
	f.add("preemptible", "preemptible", cty.BoolVal(r.GetPreemptible()))
	return f.list
}
