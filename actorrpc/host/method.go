package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// class is what is known of a type of actors.
type class struct {
	name    string
	methods map[string]*method // by their names on the wire
	goNames map[string]*method
}

// method is one that can be called.
type method struct {
	name, goName string // "get_lesson", "GetLesson"
	index        int    // of reflect.Value.Method
	takesContext bool
	params       []reflect.Type // the last is the element's if it is variadic
	variadic     bool
	result       bool
	streams      bool // the result is an iterator
	fails        bool // the last result is an error
	signature    string
	shapes       *codec.Shapes // of the class
}

// classOf describes a type. Exported methods that cannot be called are not in it.
func classOf(t reflect.Type) (*class, error) {
	c := &class{name: t.String(), methods: map[string]*method{}, goNames: map[string]*method{}}
	shapes := new(codec.Shapes)
	for exported := range t.Methods() {
		m, ok := methodOf(exported)
		if !ok {
			continue
		}
		if other, taken := c.methods[m.name]; taken {
			return nil, fmt.Errorf("%s: methods %s and %s are both called %q; rename one", t, other.goName, m.goName, m.name)
		}
		m.shapes = shapes
		c.methods[m.name], c.goNames[m.goName] = m, m
	}
	if len(c.methods) == 0 {
		return nil, fmt.Errorf("%s has no method that can be called: want exported ones, as in (ctx context.Context, n int) (int, error)", t)
	}
	return c, nil
}

func methodOf(m reflect.Method) (*method, bool) {
	t := m.Type
	out := &method{name: snake(m.Name), goName: m.Name, index: m.Index, variadic: t.IsVariadic()}
	first := 1 // after the receiver
	if t.NumIn() > 1 && t.In(1) == reflect.TypeFor[context.Context]() {
		out.takesContext, first = true, 2
	}
	for i := first; i < t.NumIn(); i++ {
		p := t.In(i)
		if out.variadic && i == t.NumIn()-1 {
			p = p.Elem()
		}
		out.params = append(out.params, p)
	}
	results := t.NumOut()
	if results > 0 && t.Out(results-1) == reflect.TypeFor[error]() {
		out.fails = true
		results--
	}
	out.result = results == 1
	out.streams = out.result && streamed(t.Out(0))
	if results > 1 {
		return nil, false
	}
	out.signature = signature(out, t)
	return out, true
}

// signature is as Go writes it, without receiver and context.
func signature(m *method, t reflect.Type) string {
	params := make([]string, len(m.params))
	for i, p := range m.params {
		params[i] = p.String()
		if m.variadic && i == len(m.params)-1 {
			params[i] = "..." + params[i]
		}
	}
	text := m.name + "(" + strings.Join(params, ", ") + ")"
	switch {
	case m.result && m.fails:
		return text + " (" + t.Out(0).String() + ", error)"
	case m.result:
		return text + " " + t.Out(0).String()
	case m.fails:
		return text + " error"
	}
	return text
}

// snake is the name on the wire: "get_lesson" of GetLesson, "http_port" of HTTPPort.
func snake(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 && letters[i-1] != '_' {
			nextLower := i+1 < len(letters) && unicode.IsLower(letters[i+1])
			if !unicode.IsUpper(letters[i-1]) || nextLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// find is the method of a name.
func (c *class) find(name string) (*method, *rpcerror.Error) {
	if m, ok := c.methods[name]; ok {
		return m, nil
	}
	if m, ok := c.goNames[name]; ok {
		return m, nil
	}
	e := &rpcerror.Error{Code: rpcerror.CodeUnknownMethod, Message: fmt.Sprintf("no method %q", clip(name, maxNameShown))}
	if strings.HasPrefix(name, "_") {
		e.Message += "; underscore names are not callable"
		return nil, e
	}
	e.Suggestions = rpcerror.Suggest(name, slices.Collect(maps.Keys(c.methods)))
	return nil, e
}

// values are the arguments of a call as the method takes them. They may take so many bytes
// of memory when they are decoded; names are those of the parameters.
func (m *method) values(call *wire.Call, buffers [][]byte, memory uint64, names []string) ([]reflect.Value, error) {
	in, err := m.shapes.DecodeArgs(codec.Kind(call.GetCodec()), call.GetArgs(), buffers, memory)
	if err != nil {
		return nil, err
	}
	given := len(in.Positional)
	if len(in.Named) > 0 {
		if err := m.arrange(in, names); err != nil {
			return nil, err
		}
	}
	if m.variadic {
		out, err := in.IntoVariadic(m.params)
		return out, asGiven(err, given, names)
	}
	out, err := in.Into(m.params)
	return out, asGiven(err, given, names)
}

// asGiven has the path of an argument that was given by name begin with that.
func asGiven(err error, given int, names []string) error {
	e, ok := errors.AsType[*codec.Error](err)
	if !ok {
		return err
	}
	for i := given; i < len(names); i++ {
		if rest, ok := strings.CutPrefix(e.Path, fmt.Sprintf("args[%d]", i)); ok {
			return &codec.Error{Path: "kwargs." + names[i] + rest, Problem: e.Problem}
		}
	}
	return err
}

// arrange puts arguments that were given by name where they belong.
func (m *method) arrange(in *codec.Arguments, names []string) error {
	if len(names) == 0 {
		return nil // the codec reports what is wrong with them
	}
	for _, name := range slices.Sorted(maps.Keys(in.Named)) {
		if i := slices.Index(names, name); i < len(in.Positional) {
			shown := clip(name, maxNameShown)
			return &rpcerror.Error{
				Code: rpcerror.CodeBadArguments, Argument: "kwargs." + shown, Message: fmt.Sprintf("unexpected argument %q", shown),
				Suggestions: rpcerror.Suggest(name, names[min(len(in.Positional), len(names)):]),
			}
		}
	}
	for _, name := range names[len(in.Positional):] {
		v, ok := in.Named[name]
		if !ok {
			return &codec.Error{Problem: fmt.Sprintf("missing argument %q", name)}
		}
		in.Positional = append(in.Positional, v)
	}
	in.Named = nil
	return nil
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
