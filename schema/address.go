package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Kind is a kind of declaration that an address can name.
type Kind string

// The kinds, in the order in which they are created.
const (
	KindNamespace    Kind = "namespace"
	KindReservation  Kind = "reservation"
	KindJobGroup     Kind = "job_group"
	KindJob          Kind = "job"
	KindActorService Kind = "actor_service"
	KindNotification Kind = "notification"
)

// ModuleWord is how addresses of modules, which have no Kind, begin.
const ModuleWord = "module"

// Kinds lists every Kind in creation order.
func Kinds() []Kind {
	return []Kind{KindNamespace, KindReservation, KindJobGroup, KindJob, KindActorService, KindNotification}
}

// GroupMembers lists the kinds that may stand in a job group.
func GroupMembers() []Kind { return []Kind{KindReservation, KindJob, KindActorService} }

// Address names one declaration: "namespace.rl", "job.etl[3]",
// "job_group.math.job.rollout[\"a\"]", "actor_service.inference[0]", and those of
// modules: "module.eval[\"a\"].job.score". With a Module and no Kind it names the
// module as a whole. It is comparable and may be a map key; the zero Address
// names nothing.
type Address struct {
	Kind   Kind
	Module string // "module.NAME[KEY]", with those inside it behind dots; "" for the root
	Group  string // name of the job_group that it stands in, "" at the top level
	Name   string
	Key    Key // instance key from count, for_each or replicas
}

// Key is the instance key of an address. The zero Key means "no key".
type Key struct {
	kind keyKind
	n    int
	s    string
}

type keyKind uint8

const (
	keyNone keyKind = iota
	keyInt
	keyString
)

// IntKey is the key of the n-th instance of a count.
func IntKey(n int) Key { return Key{kind: keyInt, n: n} }

// StringKey is the key of a for_each instance.
func StringKey(s string) Key { return Key{kind: keyString, s: s} }

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.kind == keyNone }

// Int returns the index and whether the key is one.
func (k Key) Int() (int, bool) { return k.n, k.kind == keyInt }

// Str returns the string key and whether the key is one.
func (k Key) Str() (string, bool) { return k.s, k.kind == keyString }

// String is the key in brackets, "" for no key.
func (k Key) String() string {
	switch k.kind {
	case keyInt:
		return "[" + strconv.Itoa(k.n) + "]"
	case keyString:
		return "[" + strconv.Quote(k.s) + "]"
	case keyNone:
	}
	return ""
}

// Base is the address without its instance key.
func (a Address) Base() Address {
	a.Key = Key{}
	return a
}

// GroupAddress is the job group that a job, service or reservation stands in, zero if
// there is none.
func (a Address) GroupAddress() Address {
	if a.Group == "" {
		return Address{}
	}
	return Address{Kind: KindJobGroup, Module: a.Module, Name: a.Group}
}

// Modules are the modules that an address stands in, the outer ones first, each
// as an instance and as a whole.
func (a Address) Modules() []Address {
	steps, err := addressSteps(make([]addressStep, 0, usualSteps), a.Module)
	if err != nil {
		return nil // in none
	}
	var found []Address
	path := ""
	for _, step := range steps {
		if !step.key.IsZero() {
			found = append(found, Address{Module: JoinModule(path, step.name, Key{})})
		}
		path = JoinModule(path, step.name, step.key)
		found = append(found, Address{Module: path})
	}
	return found
}

// Scoped is the name with the module and the group it is in, "rl", "module.eval.rl" or
// "job_group.math.pool": what specs call a namespace or a reservation by.
func (a Address) Scoped() string {
	name := a.Name
	if a.Group != "" {
		name = groupPrefix + a.Group + "." + name
	}
	if a.Module == "" {
		return name
	}
	return a.Module + "." + name
}

const groupPrefix = string(KindJobGroup) + "."

// ScopedAddress is the address of a kind that has a scoped name.
func ScopedAddress(kind Kind, scoped string) Address {
	head := scoped
	if key := strings.LastIndexByte(scoped, ']') + 1; strings.Contains(scoped[key:], "/") {
		head = scoped[:key+strings.IndexByte(scoped[key:], '/')] // what is launched has dots in its name
	}
	if i := strings.LastIndexByte(head, '.'); i >= 0 { // keys are followed by a name
		module, group := cutGroup(scoped[:i])
		return Address{Kind: kind, Module: module, Group: group, Name: scoped[i+1:]}
	}
	return Address{Kind: kind, Name: scoped}
}

// cutGroup cuts the job group off what is before a scoped name. Modules are named in
// pairs of "module" and a name, so that a group after them is a pair of its own.
func cutGroup(path string) (module, group string) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 || !ValidName(path[i+1:]) {
		return path, ""
	}
	module, pair := strings.CutSuffix(path[:i], string(KindJobGroup))
	before, dotted := strings.CutSuffix(module, ".")
	switch {
	case !pair || module != "" && !dotted:
		return path, ""
	case module == "":
		return "", path[i+1:]
	}
	if _, err := addressSteps(make([]addressStep, 0, usualSteps), before); err != nil {
		return path, "" // a module that is named like the kind
	}
	return before, path[i+1:]
}

// Contains reports whether b is a itself, one of its instances, or, where a is
// a job group or a module, stands in it. It is what --target and --replace
// match with.
func (a Address) Contains(b Address) bool {
	if a == b || a == b.Base() {
		return true
	}
	if a.IsModule() {
		rest, in := strings.CutPrefix(b.Module, a.Module)
		return in && (rest == "" || rest[0] == '.' || rest[0] == '[' && !strings.HasSuffix(a.Module, "]"))
	}
	return a.Kind == KindJobGroup && b.GroupAddress() == a
}

// IsModule reports whether the address names a module as a whole.
func (a Address) IsModule() bool { return a.Kind == "" && a.Module != "" }

// IsZero reports whether the address names nothing.
func (a Address) IsZero() bool { return a == Address{} }

func (a Address) String() string {
	if a.Kind == "" {
		return a.Module
	}
	var b strings.Builder
	if a.Module != "" {
		b.WriteString(a.Module)
		b.WriteByte('.')
	}
	if a.Group != "" {
		b.WriteString(string(KindJobGroup))
		b.WriteByte('.')
		b.WriteString(a.Group)
		b.WriteByte('.')
	}
	b.WriteString(string(a.Kind))
	b.WriteByte('.')
	b.WriteString(a.Name)
	b.WriteString(a.Key.String())
	return b.String()
}

// Compare orders addresses by kind (creation order), module, group, name and
// key; integer keys by number, before string keys.
func (a Address) Compare(b Address) int {
	return cmp.Or(
		cmp.Compare(kindOrder(a.Kind), kindOrder(b.Kind)),
		compareModules(a.Module, b.Module),
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Key.kind, b.Key.kind),
		cmp.Compare(a.Key.n, b.Key.n),
		cmp.Compare(a.Key.s, b.Key.s),
	)
}

func kindOrder(k Kind) int {
	for i, each := range Kinds() {
		if each == k {
			return i
		}
	}
	return len(Kinds())
}

// MarshalText writes the address as String does.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// AppendText appends what MarshalText returns.
func (a Address) AppendText(b []byte) ([]byte, error) { return append(b, a.String()...), nil }

// UnmarshalText reads what MarshalText wrote.
func (a *Address) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*a = Address{}
		return nil
	}
	parsed, err := ParseAddress(string(text))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// compareModules orders module paths, the numbers in them by their value.
func compareModules(a, b string) int {
	if a == b {
		return 0
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	digits := func(s string) int {
		n := i
		for n < len(s) && '0' <= s[n] && s[n] <= '9' {
			n++
		}
		return n - i
	}
	if x, y := digits(a), digits(b); x != y && x+y > 1 {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// ParseAddress reads an address as String writes it.
func ParseAddress(s string) (Address, error) {
	if a, ok := launchedAddress(s); ok {
		return a, nil
	}
	steps, err := addressSteps(make([]addressStep, 0, usualSteps), s)
	if err != nil {
		return Address{}, fmt.Errorf("address %q: %w", s, err)
	}
	var a Address
	for len(steps) > 0 && steps[0].kind == ModuleWord {
		a.Module = JoinModule(a.Module, steps[0].name, steps[0].key)
		steps = steps[1:]
	}
	switch {
	case len(steps) == 0 && a.Module != "":
		return a, nil
	case len(steps) == 2 && steps[0].kind == KindJobGroup && steps[0].key.IsZero() && slices.Contains(GroupMembers(), steps[1].kind):
		a.Group = steps[0].name
		steps = steps[1:]
	}
	if len(steps) != 1 {
		return Address{}, fmt.Errorf("address %q: %w", s, errAddressForm)
	}
	a.Kind, a.Name, a.Key = steps[0].kind, steps[0].name, steps[0].key
	if kindOrder(a.Kind) == len(Kinds()) {
		hint := "the kinds are " + kindList()
		if near := Nearest(string(a.Kind), strings.Split(kindList(), ", ")); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return Address{}, fmt.Errorf("address %q: unknown kind %q; %s", s, a.Kind, hint)
	}
	return a, nil
}

var errAddressForm = errors.New("want KIND.NAME, KIND.NAME[KEY] or job_group.GROUP.job.NAME (or actor_service, reservation), with module.NAME. before it for what is in a module")

// JoinModule is the path of a module inside another.
func JoinModule(parent, name string, key Key) string {
	if parent != "" {
		parent += "."
	}
	return parent + "module." + name + key.String()
}

// addressStep is KIND.NAME[KEY], of which an address is made.
type addressStep struct {
	kind Kind
	name string
	key  Key
}

// usualSteps is more than most addresses have.
const usualSteps = 4

// addressSteps appends the steps of an address to room, which callers have on their stacks.
func addressSteps(room []addressStep, s string) ([]addressStep, error) {
	steps := room
	for rest := s; ; rest = rest[1:] {
		kind, after, ok := strings.Cut(rest, ".")
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}
		step := addressStep{kind: Kind(kind), name: after[:end]}
		if !ok || !ValidName(kind) || !ValidName(step.name) {
			return nil, errAddressForm
		}
		var err error
		if rest, err = step.cutKey(after[end:]); err != nil {
			return nil, err
		}
		steps = append(steps, step)
		if rest == "" {
			return steps, nil
		}
		if rest[0] != '.' {
			return nil, errAddressForm
		}
	}
}

// cutKey reads the key that s may begin with, and returns what is after it.
func (a *addressStep) cutKey(s string) (rest string, err error) {
	inner, ok := strings.CutPrefix(s, "[")
	if !ok {
		return s, nil
	}
	if quoted, err := strconv.QuotedPrefix(inner); err == nil && quoted[0] == '"' {
		str, err := strconv.Unquote(quoted)
		rest, ok := strings.CutPrefix(inner[len(quoted):], "]")
		if err != nil || !ok {
			return "", fmt.Errorf("the [ has no closing ]")
		}
		a.key = StringKey(str)
		return rest, nil
	}
	digits, rest, ok := strings.Cut(inner, "]")
	if !ok {
		return "", fmt.Errorf("the [ has no closing ]")
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || strconv.Itoa(n) != digits {
		return "", fmt.Errorf("key [%s] is neither an index nor a quoted string", digits)
	}
	a.key = IntKey(n)
	return rest, nil
}

func kindList() string {
	names := make([]string, 0, len(Kinds()))
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// ValidName reports whether s may name a block: a letter or underscore, then
// letters, digits, underscores and hyphens, at most 63 bytes.
func ValidName(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

var (
	_ json.Marshaler   = Text{}
	_ json.Unmarshaler = (*Text)(nil)
)
