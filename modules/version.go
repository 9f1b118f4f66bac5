package modules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	goversion "github.com/hashicorp/go-version"
)

// parseVersion reads a version in the one way that it can be written, so that
// no two archives are of the same version.
func parseVersion(text string) (*goversion.Version, error) {
	v, err := goversion.NewSemver(text)
	if err != nil || v.String() != text || len(v.Segments()) != 3 || v.Metadata() != "" {
		return nil, fmt.Errorf("%q is not a version; write MAJOR.MINOR.PATCH, such as 1.4.0 or 2.0.0-rc.1", text)
	}
	return v, nil
}

// constraint is which versions a call takes.
type constraint struct {
	text string
	all  goversion.Constraints
	// early: it names a pre-release, without which none is taken.
	early bool
}

// anyVersion is what the lock file has for a call that takes every version.
const anyVersion = "any"

func (c constraint) String() string { return cmp.Or(c.text, anyVersion) }

func parseConstraint(text string) (constraint, error) {
	c := constraint{text: text}
	if text == "" {
		return c, nil
	}
	all, err := goversion.NewConstraint(text)
	if err != nil {
		return c, fmt.Errorf("version %q is no constraint; write one such as \"1.4.0\", \"~> 1.4\" or \">= 1.2, < 2.0\"", text)
	}
	c.all = all
	c.early = slices.ContainsFunc(all, func(one *goversion.Constraint) bool { return one.Prerelease() })
	return c, nil
}

func (c constraint) allows(v *goversion.Version) bool {
	return (v.Prerelease() == "" || c.early) && c.all.Check(v)
}

// release is one version of a module in a registry.
type release struct {
	version *goversion.Version
	file    string // the archive's name in the registry
}

// releasesOf finds the archives of a module among names of files, oldest first.
// Of a version that is there with several endings it has the first of endings.
func releasesOf(src Source, files []string) []release {
	found := map[string]release{}
	for _, ending := range slices.Backward(endings()) {
		for _, file := range files {
			text, ok := strings.CutSuffix(strings.TrimPrefix(file, src.prefix()), ending)
			if !ok || !strings.HasPrefix(file, src.prefix()) {
				continue
			}
			if v, err := parseVersion(text); err == nil {
				found[text] = release{version: v, file: file}
			}
		}
	}
	releases := make([]release, 0, len(found))
	for _, r := range found {
		releases = append(releases, r)
	}
	slices.SortFunc(releases, func(a, b release) int { return a.version.Compare(b.version) })
	return releases
}

// newest is the newest release that a call takes, or an error with what
// there is.
func newest(src Source, c constraint, releases []release) (release, error) {
	for _, r := range slices.Backward(releases) {
		if c.allows(r.version) {
			return r, nil
		}
	}
	if len(releases) == 0 {
		return release{}, fmt.Errorf("there is no archive of %s: %s has no file %sVERSION%s",
			src.Archive(), src.Registry, src.prefix(), strings.Join(endings(), " or "+src.prefix()+"VERSION"))
	}
	there := versionsOf(releases)
	if c.text == "" {
		return release{}, fmt.Errorf("of %s there are pre-releases only, which must be asked for, such as version = %q; there is %s",
			src.Archive(), releases[len(releases)-1].version, there)
	}
	return release{}, fmt.Errorf("no version of %s fits %q; there is %s", src.Archive(), c.text, there)
}

// versionsOf names the last versions for people.
func versionsOf(releases []release) string {
	const shown = 8
	var names []string
	for _, r := range releases[max(0, len(releases)-shown):] {
		names = append(names, r.version.String())
	}
	if more := len(releases) - shown; more > 0 {
		return fmt.Sprintf("%s, and %d older ones", strings.Join(names, ", "), more)
	}
	return strings.Join(names, ", ")
}
