package schema

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// What an actor block gives to the program that hosts the actor.
const (
	ActorClassVariable   = "FRAY_ACTOR_CLASS"   // "package.module:Class", or the name that the program knows it by
	ActorArgsVariable    = "FRAY_ACTOR_ARGS"    // of its constructor, a JSON object
	ActorNamesVariable   = "FRAY_ACTOR_NAMES"   // that the actor has, a JSON list
	ActorOptionsVariable = "FRAY_ACTOR_OPTIONS" // a JSON object of what the block says besides
)

// TerminationVariable has the file in which a program of fray's own records why it
// failed, a Termination in JSON.
const TerminationVariable = "FRAY_TERMINATION_FILE"

// HostsActor reports whether the job's tasks host an actor that their environment
// names.
func (j *Job) HostsActor() bool {
	_, class := j.Environment.Env[ActorClassVariable]
	_, names := j.Environment.Env[ActorNamesVariable]
	return class || names
}

// actorBlock is the block, and actorPort the port that actors are called at.
const (
	actorBlock = "actor"
	actorPort  = "actor"
)

// maxActorArgs is a little less than Linux lets one environment variable have.
const maxActorArgs = 128<<10 - 64

// The implied health check of an actor: ready is constructed and registered,
// which may take as long as a large model takes to load. Later an interpreter
// that computes without a break may be slow to answer; it is restarted only if
// nothing is heard of it for a quarter of an hour.
const (
	actorReady     = "/readyz"
	actorLoading   = Duration(24 * time.Hour)
	actorPatience  = Duration(20 * time.Second)
	actorInterval  = Duration(10 * time.Second)
	actorThreshold = 30
)

// hostsActor reports whether an actor block stands in a declaration, or may.
func (d *declaration) hostsActor() bool {
	return d.block.child(actorBlock) != nil ||
		slices.ContainsFunc(d.block.dynamics, func(d *dynamic) bool { return d.typ.name == actorBlock })
}

// hostCommand runs a Python class.
func hostCommand() []Text { return []Text{Plain("python"), Plain("-m"), Plain("fray.host")} }

// withActorPort are the ports of a task that hosts an actor, its own first.
func withActorPort(ports []Port) []Port {
	own := Port{Name: actorPort}
	others := slices.DeleteFunc(slices.Clone(ports), func(p Port) bool {
		if p.Name == actorPort {
			own = p
		}
		return p.Name == actorPort
	})
	return append([]Port{own}, others...)
}

func actorHealth() *Health {
	return &Health{
		HTTP: actorReady, Port: actorPort, Interval: actorInterval, Timeout: actorPatience,
		Threshold: actorThreshold, StartPeriod: actorLoading,
	}
}

// actor adds to a replica's environment what its actor block says, but for the
// names, which are each replica's own: see nameActors.
func (e *evaluator) actor(decl *declaration, s scope, j *Job) {
	b := decl.block.child(actorBlock)
	if b == nil {
		return
	}
	env := cloned(j.Environment.Env)
	inPython := decl.block.attr("command") == nil
	asClass := notEmpty
	if inPython {
		asClass = pythonClass
	}
	env[ActorClassVariable] = Plain(get(e, s, b.attr("class"), asClass, ""))
	env[ActorArgsVariable] = e.actorArgs(s, b.attr("args"), inPython)
	env[ActorOptionsVariable] = Plain(e.actorOptions(s, b))
	j.Environment.Env = env
}

// nameActors tells replicas the names that their actors have.
func nameActors(b *block, jobs []Job) {
	if b.child(actorBlock) == nil {
		return
	}
	for i := range jobs {
		env := cloned(jobs[i].Environment.Env) // the replicas may share one
		env[ActorNamesVariable] = Plain(actorNames(jobs[i].Addr))
		jobs[i].Environment.Env = env
	}
}

func cloned(env map[string]Text) map[string]Text {
	c := make(map[string]Text, len(env)+4)
	maps.Copy(c, env)
	return c
}

// actorNames are that of the service, which its replicas share, and the
// replica's own.
func actorNames(addr Address) string {
	if index, ok := addr.Key.Int(); ok {
		return fmt.Sprintf("[%q,%q]", addr.Name, addr.Name+"_"+strconv.Itoa(index))
	}
	return fmt.Sprintf("[%q]", addr.Name)
}

// actorOptions are those that the block states, in the order of their names.
func (e *evaluator) actorOptions(s scope, b *block) string {
	var stated []string
	if allowed, ok := lookup(e, s, b.attr("allow_pickle"), asBool, false); ok {
		stated = append(stated, fmt.Sprintf(`"allow_pickle":%t`, allowed))
	}
	if n, ok := lookup(e, s, b.attr("max_concurrency"), wholeNumber(1, math.MaxInt32), 1); ok {
		stated = append(stated, fmt.Sprintf(`"max_concurrency":%d`, n))
	}
	return "{" + strings.Join(stated, ",") + "}"
}

// actorArgs are a constructor's named arguments as JSON: secret if any of them
// is, unknown while any is.
func (e *evaluator) actorArgs(s scope, x *expression, inPython bool) Text {
	none := Plain("{}")
	if x == nil {
		return none
	}
	out := e.eval(x, s)
	if !out.ok || !e.keepable(x, out) {
		return none
	}
	val, marks := out.val.UnmarkDeep()
	if ty := val.Type(); ty != cty.DynamicPseudoType && !ty.IsMapType() && !ty.IsObjectType() {
		e.wrongValue(x, out, fmt.Errorf("want the constructor's arguments by name, such as { path = \"model\" }, this is %s", friendly(val)))
		return none
	}
	if val.IsNull() {
		return none
	}
	if !e.actorArgNames(x, out, val, inPython) || !val.IsWhollyKnown() {
		return UnknownText()
	}
	data, err := ctyjson.Marshal(val, val.Type())
	if err != nil {
		e.wrongValue(x, out, err)
		return none
	}
	if len(data) > maxActorArgs {
		e.wrongValue(x, out, fmt.Errorf("they are %s as JSON, and a process can be given %s; put them into a file of the project and pass its name",
			Bytes(len(data)), Bytes(maxActorArgs)))
		return none
	}
	if isSensitive(out.val) {
		return secretOf(string(data), sourcesOf(marks))
	}
	return Plain(string(data))
}

// actorArgNames reports names that no Python function has for an argument.
func (e *evaluator) actorArgNames(x *expression, out evaluated, val cty.Value, inPython bool) bool {
	if !inPython || !val.IsKnown() {
		return true
	}
	for it := val.ElementIterator(); it.Next(); {
		name, _ := it.Element()
		if !pythonName().MatchString(name.AsString()) {
			e.wrongValue(x, out, fmt.Errorf("%q cannot be the name of an argument in Python: use letters, digits and _", name.AsString()))
			return false
		}
	}
	return true
}

func pythonName() *regexp.Regexp { return regexp.MustCompile(`^[\pL_][\pL\pN_]*$`) }

func pythonPath() *regexp.Regexp {
	return regexp.MustCompile(`^[\pL_][\pL\pN_]*(\.[\pL_][\pL\pN_]*)*$`)
}

// pythonClass converts the path of a class that fray.host imports.
func pythonClass(v cty.Value) (string, error) {
	class, err := notEmpty(v)
	if err != nil {
		return "", err
	}
	module, name, ok := strings.Cut(class, ":")
	if ok && pythonPath().MatchString(module) && pythonPath().MatchString(name) {
		return class, nil
	}
	const form = "package.module:Class, what Python imports and then the class in it"
	if hint := likelyClass(class); hint != "" {
		return "", fmt.Errorf("want %s; did you mean %q?", form, hint)
	}
	return "", errors.New("want " + form + "; for a program that is not Python, add command")
}

// likelyClass is what somebody meant who wrote a class as a file's path, or
// with points only; "" if that cannot be told.
func likelyClass(class string) string {
	module, name, ok := strings.Cut(class, ":")
	if !ok {
		at := strings.LastIndexByte(class, '.')
		if at < 0 || strings.HasSuffix(class, ".py") {
			return ""
		}
		module, name = class[:at], class[at+1:]
	}
	if strings.HasSuffix(module, ".py") || strings.Contains(module, "/") {
		module = strings.TrimPrefix(path.Clean(strings.TrimSuffix(module, ".py")), "src/")
		module = strings.ReplaceAll(module, "/", ".")
	}
	if !pythonPath().MatchString(module) || !pythonPath().MatchString(name) {
		return ""
	}
	return module + ":" + name
}

// actorPaths are the attributes of a spec that part of an actor block becomes.
func actorPaths(of string) []string {
	const env = "environment.env."
	switch of {
	case actorBlock:
		return []string{env + ActorClassVariable, env + ActorArgsVariable, env + ActorOptionsVariable}
	case actorBlock + ".class":
		return []string{env + ActorClassVariable}
	case actorBlock + ".max_concurrency", actorBlock + ".allow_pickle":
		return []string{env + ActorOptionsVariable}
	}
	if of == actorBlock+".args" || strings.HasPrefix(of, actorBlock+".args.") {
		return []string{env + ActorArgsVariable}
	}
	return []string{of}
}
