package modules

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Publication is an archive to be put into a registry.
type Publication struct {
	Source  Source
	Version string
	Archive string // path of a .tar.zst file
}

// Publish puts an archive into a registry, and reports whether the same files
// were there already under that version; other ones are an error. What cannot
// be unpacked is not published.
func (r Registries) Publish(ctx context.Context, p Publication) (there bool, err error) {
	file := p.Source.prefix() + p.Version + endings()[0]
	if there, err = r.publish(ctx, p, file); err != nil {
		return there, fmt.Errorf("publish %s %s: %w", p.Source.Archive(), p.Version, err)
	}
	return there, nil
}

func (r Registries) publish(ctx context.Context, p Publication, file string) (bool, error) {
	v, err := parseVersion(p.Version)
	if err != nil {
		return false, err
	}
	if p.Source.Sub != "" {
		return false, fmt.Errorf("an archive is published as a whole; leave out //%s", p.Source.Sub)
	}
	tmp, err := os.MkdirTemp("", "fray-publish-")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	own, err := unpackFile(p.Archive, file, filepath.Join(tmp, "own"))
	if err != nil {
		return false, err
	}
	to, err := r.open(ctx, p.Source)
	if err != nil {
		return false, err
	}
	there, err := published(ctx, to, p.Source, v.String())
	if err != nil {
		return false, err
	}
	if there == "" {
		if err := upload(ctx, to, file, p.Archive); err != nil {
			return false, err
		}
	}
	// Another publisher may have been faster: only what is there now counts.
	now := filepath.Join(tmp, "now")
	if err := os.Mkdir(now, 0o755); err != nil {
		return false, err
	}
	name := file
	if there != "" {
		name = there
	}
	got, err := fetch(ctx, to, name, now)
	if err == nil && got.files != own.files {
		err = fmt.Errorf("that version holds other files already (%s, and these are %s), and a version never changes: publish the next one", got.files, own.files)
	}
	return there != "", err
}

// published is the name of a version's archive in a registry, or "".
func published(ctx context.Context, in registry, src Source, version string) (string, error) {
	files, err := in.list(ctx, src.prefix())
	if errors.Is(err, os.ErrNotExist) {
		return "", nil // a directory that publishing makes
	}
	for _, r := range releasesOf(src, files) {
		if r.version.String() == version {
			return r.file, err
		}
	}
	return "", err
}

func upload(ctx context.Context, to registry, file, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return to.create(ctx, file, f)
}
