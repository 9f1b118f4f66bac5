package schema

import (
	"strings"
)

// Jobs, groups and reservations that programs launch have addresses whose name
// begins with their namespace and a slash, which no declared name has:
// "job.rl/train-1.5b", "job_group.rl/pool.job.server-0", "reservation.rl/flex".
// Inside a launched group, names are as they were asked for.

// maxLaunchName is the longest name that may be launched, in bytes.
const maxLaunchName = 200

// LaunchedAddress is that of what is launched by a name in a namespace; of a
// job in a group, if that is not "".
func LaunchedAddress(kind Kind, namespace, group, name string) Address {
	ns := ScopedAddress(KindNamespace, namespace)
	if group != "" {
		return Address{Kind: kind, Module: ns.Module, Group: ns.Name + "/" + group, Name: name}
	}
	return Address{Kind: kind, Module: ns.Module, Name: ns.Name + "/" + name}
}

// IsLaunched reports whether the address is of what a program launched.
func (a Address) IsLaunched() bool {
	return strings.Contains(a.Name, "/") || strings.Contains(a.Group, "/")
}

// LaunchedName is the name that was asked for, without the namespace.
func (a Address) LaunchedName() string {
	if a.Group != "" {
		return a.Name
	}
	_, name, _ := strings.Cut(a.Name, "/")
	return name
}

// ValidLaunchName reports whether s may name what is launched: letters, digits
// and ". _ - /", beginning and ending with a letter, a digit or an underscore,
// at most 200 bytes. ".job." is kept for addresses.
func ValidLaunchName(s string) bool {
	if s == "" || len(s) > maxLaunchName || strings.Contains("."+s+".", ".job.") || strings.Contains(s, "//") {
		return false
	}
	for i := range len(s) {
		c := s[i]
		word := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		inner := (c == '.' || c == '-' || c == '/') && i > 0 && i < len(s)-1
		if !word && !inner {
			return false
		}
	}
	return true
}

// launchedAddress reads an address of something launched, and reports whether s is one.
func launchedAddress(s string) (Address, bool) {
	i := strings.LastIndexByte(s[:max(strings.IndexByte(s, '/'), 0)], '.')
	if i < 0 {
		return Address{}, false
	}
	// The kind stands before the name: [MODULE.]KIND.NAMESPACE/...
	kindAt := strings.LastIndexByte(s[:i], '.') + 1
	module, rest := strings.TrimSuffix(s[:kindAt], "."), s[kindAt:]
	if module != "" {
		if parsed, err := ParseAddress(module); err != nil || !parsed.IsModule() {
			return Address{}, false
		}
	}
	word, name, _ := strings.Cut(rest, ".")
	a := Address{Kind: Kind(word), Module: module, Name: name}
	if group, inner, in := strings.Cut(name, ".job."); in && a.Kind == KindJobGroup {
		a = Address{Kind: KindJob, Module: module, Group: group, Name: inner}
		return a, validLaunchedPath(group) && ValidLaunchName(inner)
	}
	switch a.Kind {
	case KindJob, KindJobGroup, KindReservation:
		return a, validLaunchedPath(name)
	case KindNamespace, KindActorService, KindNotification:
	}
	return Address{}, false
}

// validLaunchedPath reports whether s is a namespace, a slash and a name.
func validLaunchedPath(s string) bool {
	namespace, name, ok := strings.Cut(s, "/")
	return ok && ValidName(namespace) && ValidLaunchName(name)
}
