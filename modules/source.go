package modules

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Source names a module that is an archive, of whatever version.
type Source struct {
	Registry string // directory of the archives: "gs://acme/modules" or "file:///srv/modules"
	Name     string
	Sub      string // directory of the module within the archive; "" for its top
}

// Schemes of a registry.
const (
	bucketScheme    = "gs://"
	directoryScheme = "file://"
)

// forms is how sources are written.
const forms = "write gs://BUCKET/PATH/NAME or file:///PATH/NAME for an archive, and ./DIR for a directory"

// ParseSource reads a source such as "gs://acme/modules/pool" or, where the
// module is a directory of the archive, "file:///srv/modules/pool//gpu".
func ParseSource(text string) (Source, error) {
	s, err := parseSource(text)
	if err != nil {
		return Source{}, fmt.Errorf("%q is not where an archive can be: %w", text, err)
	}
	return s, nil
}

func parseSource(text string) (Source, error) {
	scheme := bucketScheme
	rest, ok := strings.CutPrefix(text, scheme)
	if !ok {
		scheme = directoryScheme
		if rest, ok = strings.CutPrefix(text, scheme); !ok {
			return Source{}, errors.New(forms)
		}
	}
	at, sub, hasSub := strings.Cut(rest, "//")
	dir, name := path.Split(at)
	dir = strings.TrimSuffix(dir, "/")
	s := Source{Registry: scheme + dir, Name: name, Sub: sub}
	switch {
	case strings.ContainsAny(at, "?#*\\\"$%") || strings.ContainsFunc(text, isControl):
		return s, errors.New("it has a character that no source has")
	case scheme == directoryScheme && !strings.HasPrefix(at, "/"):
		return s, errors.New("the path after file:// begins with a slash: file:///srv/modules/NAME")
	case dir == "":
		return s, errors.New(forms)
	case path.Clean(dir) != dir || slices.Contains(strings.Split(dir, "/"), ".."):
		return s, fmt.Errorf("write its path in the shortest way: %s%s", scheme, path.Join(dir, name))
	case hasSub && (!filepath.IsLocal(sub) || path.Clean(sub) != sub || sub == "."):
		return s, errors.New("what follows // is a directory within the archive, such as //gpu")
	}
	return s, checkName(name)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// checkName rejects names that cannot be distinguished from a version.
func checkName(name string) error {
	form := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)
	versioned := regexp.MustCompile(`-v?\d+\.\d+(\.|-|$)`)
	switch {
	case !form.MatchString(name):
		return fmt.Errorf("the name %q is not made of letters, digits, dots, - and _", name)
	case endingOf(name) != "", versioned.MatchString(name):
		return errors.New("leave out the version and the ending of the file: the name is what comes before, the version is an attribute of its own")
	case len(name) > 100:
		return errors.New("the name has more than 100 characters")
	}
	return nil
}

// Archive is the source without the directory within, as the lock file has it.
func (s Source) Archive() string { return s.Registry + "/" + s.Name }

// prefix is how the names of its archives begin.
func (s Source) prefix() string { return s.Name + "-" }

// endings of archives; the first is what publishing makes.
func endings() []string { return []string{".tar.zst", ".tar.gz"} }

// endingOf is the ending that a file's name has, or "".
func endingOf(file string) string {
	for _, ending := range endings() {
		if strings.HasSuffix(file, ending) {
			return ending
		}
	}
	return ""
}
