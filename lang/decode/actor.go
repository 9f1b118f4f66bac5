package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// maxActorArgs is a little less than Linux lets one environment variable have.
const maxActorArgs = 128<<10 - 64

// The implied health check of an actor: ready is constructed and registered,
// which may take as long as a large model takes to load. Later an interpreter
// that computes without a break may be slow to answer; it is restarted only if
// nothing is heard of it for a quarter of an hour.
const (
	actorReady     = "/readyz"
	actorLoading   = schema.Duration(24 * time.Hour)
	actorPatience  = schema.Duration(20 * time.Second)
	actorInterval  = schema.Duration(10 * time.Second)
	actorThreshold = 30
)

// hostCommand runs a Python class.
func hostCommand() []schema.Text {
	return []schema.Text{schema.Plain("python"), schema.Plain("-m"), schema.Plain("fray.host")}
}

func actorHealth() *schema.Health {
	return &schema.Health{
		HTTP: actorReady, Port: schema.ActorPort, Interval: actorInterval, Timeout: actorPatience,
		Threshold: actorThreshold, StartPeriod: actorLoading,
	}
}

// actor adds to a replica's environment what its actor block declares, but for the
// names, which are each replica's own: see nameActors.
func (e *JobDecoder) actor(j *schema.Job) {
	b := e.decl.Block.Child(language.ActorBlock)
	if b == nil {
		return
	}
	env := cloned(j.Environment.Env)
	inPython := e.decl.Block.Attr("command") == nil
	asClass := as.NotEmpty
	if inPython {
		asClass = pythonClass
	}
	env[schema.ActorClassVariable] = schema.Plain(eval.Get(e, e.instance, b.Attr("class"), asClass, ""))
	env[schema.ActorArgsVariable] = e.actorArgs(b.Attr("args"), inPython)
	env[schema.ActorOptionsVariable] = schema.Plain(e.actorOptions(b))
	j.Environment.Env = env
}

// nameActors puts the names of actors into the environments of their replicas.
func nameActors(b *configs.Block, jobs []schema.Job) {
	if b.Child(language.ActorBlock) == nil {
		return
	}
	for i := range jobs {
		env := cloned(jobs[i].Environment.Env) // the replicas may share one
		env[schema.ActorNamesVariable] = schema.Plain(actorNames(jobs[i].Addr))
		jobs[i].Environment.Env = env
	}
}

func cloned(env map[string]schema.Text) map[string]schema.Text {
	c := make(map[string]schema.Text, len(env)+4)
	maps.Copy(c, env)
	return c
}

// actorNames are that of the service, which its replicas share, and the
// replica's own.
func actorNames(addr schema.Address) string {
	if index, ok := addr.Key.Int(); ok {
		return fmt.Sprintf("[%q,%q]", addr.Name, addr.Name+"_"+strconv.Itoa(index))
	}
	return fmt.Sprintf("[%q]", addr.Name)
}

// actorOptions are those that the block states, in the order of their names.
func (e *JobDecoder) actorOptions(b *configs.Block) string {
	var stated []string
	if allowed, ok := eval.Lookup(e, e.instance, b.Attr("allow_pickle"), as.Bool, false); ok {
		stated = append(stated, fmt.Sprintf(`"allow_pickle":%t`, allowed))
	}
	if groups, ok := eval.Lookup(e, e.instance, b.Attr("concurrency_groups"), as.LimitMap, nil); ok && len(groups) > 0 {
		limits, _ := json.Marshal(groups) // texts and numbers always have a form
		stated = append(stated, fmt.Sprintf(`"concurrency_groups":%s`, limits))
	}
	if n, ok := eval.Lookup(e, e.instance, b.Attr("max_concurrency"), as.WholeNumber(1, math.MaxInt32), 1); ok {
		stated = append(stated, fmt.Sprintf(`"max_concurrency":%d`, n))
	}
	return "{" + strings.Join(stated, ",") + "}"
}

// actorArgs are a constructor's named arguments as JSON: secret if any of them
// is, unknown while any is.
func (e *JobDecoder) actorArgs(x *configs.Expression, inPython bool) schema.Text {
	none := schema.Plain("{}")
	if x == nil {
		return none
	}
	out := e.Eval(x, e.instance)
	if !out.OK || !e.Keepable(x, out) {
		return none
	}
	val, marks := out.Value.UnmarkDeep()
	if ty := val.Type(); ty != cty.DynamicPseudoType && !ty.IsMapType() && !ty.IsObjectType() {
		e.WrongValue(x, out, fmt.Errorf("want the constructor's arguments by name, such as { path = \"model\" }, this is %s", diagnose.Friendly(val)))
		return none
	}
	if val.IsNull() {
		return none
	}
	if !e.actorArgNames(x, out, val, inPython) || !val.IsWhollyKnown() {
		return schema.UnknownText()
	}
	data, err := ctyjson.Marshal(val, val.Type())
	if err != nil {
		e.WrongValue(x, out, err)
		return none
	}
	if len(data) > maxActorArgs {
		e.WrongValue(x, out, fmt.Errorf("they are %s as JSON, and a process can be given %s; put them into a file of the project and pass its name",
			schema.Bytes(len(data)), schema.Bytes(maxActorArgs)))
		return none
	}
	if mark.IsSensitive(out.Value) {
		return schema.SecretFrom(string(data), mark.Sources(marks))
	}
	return schema.Plain(string(data))
}

// actorArgNames reports names that no Python function has for an argument.
func (e *JobDecoder) actorArgNames(x *configs.Expression, out configs.Result, val cty.Value, inPython bool) bool {
	if !inPython || !val.IsKnown() {
		return true
	}
	for it := val.ElementIterator(); it.Next(); {
		name, _ := it.Element()
		if !pythonName().MatchString(name.AsString()) {
			e.WrongValue(x, out, fmt.Errorf("%q cannot be the name of an argument in Python: use letters, digits and _", name.AsString()))
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
	class, err := as.NotEmpty(v)
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

// likelyClass suggests the class for one that is written as a file's path or with
// points only; "" if there is no good guess.
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
	case language.ActorBlock:
		return []string{env + schema.ActorClassVariable, env + schema.ActorArgsVariable, env + schema.ActorOptionsVariable}
	case language.ActorBlock + ".class":
		return []string{env + schema.ActorClassVariable}
	case language.ActorBlock + ".max_concurrency", language.ActorBlock + ".allow_pickle":
		return []string{env + schema.ActorOptionsVariable}
	}
	if of == language.ActorBlock+".concurrency_groups" || strings.HasPrefix(of, language.ActorBlock+".concurrency_groups.") {
		return []string{env + schema.ActorOptionsVariable}
	}
	if of == language.ActorBlock+".args" || strings.HasPrefix(of, language.ActorBlock+".args.") {
		return []string{env + schema.ActorArgsVariable}
	}
	return []string{of}
}
