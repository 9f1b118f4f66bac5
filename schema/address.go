package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Kind is a kind of thing that an address can name.
type Kind string

// The kinds, in the order in which they are created.
const (
	KindNamespace    Kind = "namespace"
	KindReservation  Kind = "reservation"
	KindJobGroup     Kind = "job_group"
	KindJob          Kind = "job"
	KindActorService Kind = "actor_service"
)

// Kinds lists every Kind in creation order.
func Kinds() []Kind {
	return []Kind{KindNamespace, KindReservation, KindJobGroup, KindJob, KindActorService}
}

// Address names one declared thing: "namespace.rl", "job.etl[3]",
// "job_group.math.job.rollout[\"a\"]", "actor_service.inference[0]".
// It is comparable and may be a map key; the zero Address names nothing.
type Address struct {
	Kind  Kind
	Group string // name of the job_group a job stands in, "" for a top-level one
	Name  string
	Key   Key // instance key from count, for_each or replicas
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

// Contains reports whether b is a itself, one of its instances, or, where a is
// a job group, one of its jobs. It is what --target and --replace match with.
func (a Address) Contains(b Address) bool {
	if a == b || a == b.Base() {
		return true
	}
	return a.Kind == KindJobGroup && b.Kind == KindJob && b.Group == a.Name
}

// IsZero reports whether the address names nothing.
func (a Address) IsZero() bool { return a == Address{} }

func (a Address) String() string {
	if a.IsZero() {
		return ""
	}
	var b strings.Builder
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

// Compare orders addresses by kind (creation order), group, name and key;
// integer keys by number, before string keys.
func (a Address) Compare(b Address) int {
	return cmp.Or(
		cmp.Compare(kindOrder(a.Kind), kindOrder(b.Kind)),
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

// ParseAddress reads an address as String writes it.
func ParseAddress(s string) (Address, error) {
	rest, key, err := cutKey(s)
	if err != nil {
		return Address{}, fmt.Errorf("address %q: %w", s, err)
	}
	parts := strings.Split(rest, ".")
	for _, p := range parts {
		if !ValidName(p) {
			return Address{}, fmt.Errorf("address %q: want KIND.NAME, KIND.NAME[KEY] or job_group.GROUP.job.NAME", s)
		}
	}
	a := Address{Key: key}
	switch {
	case len(parts) == 2:
		a.Kind, a.Name = Kind(parts[0]), parts[1]
	case len(parts) == 4 && parts[0] == string(KindJobGroup) && parts[2] == string(KindJob):
		a.Kind, a.Group, a.Name = KindJob, parts[1], parts[3]
	default:
		return Address{}, fmt.Errorf("address %q: want KIND.NAME, KIND.NAME[KEY] or job_group.GROUP.job.NAME", s)
	}
	if kindOrder(a.Kind) == len(Kinds()) {
		return Address{}, fmt.Errorf("address %q: unknown kind %q; the kinds are %s", s, a.Kind, kindList())
	}
	return a, nil
}

func cutKey(s string) (rest string, key Key, err error) {
	rest, inner, ok := strings.Cut(s, "[")
	if !ok {
		return s, Key{}, nil
	}
	inner, ok = strings.CutSuffix(inner, "]")
	if !ok {
		return "", Key{}, fmt.Errorf("the [ has no closing ]")
	}
	if strings.HasPrefix(inner, `"`) {
		str, err := strconv.Unquote(inner)
		if err != nil {
			return "", Key{}, fmt.Errorf("key %s is no quoted string", inner)
		}
		return rest, StringKey(str), nil
	}
	n, err := strconv.Atoi(inner)
	if err != nil || n < 0 || strconv.Itoa(n) != inner {
		return "", Key{}, fmt.Errorf("key [%s] is neither an index nor a quoted string", inner)
	}
	return rest, IntKey(n), nil
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
