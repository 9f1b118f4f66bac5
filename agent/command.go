package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// revealAll returns a command's words in clear.
func revealAll(words []schema.Text, sealer schema.Sealer) ([]string, error) {
	argv := make([]string, 0, len(words))
	for i, word := range words {
		value, err := word.Reveal(sealer)
		if err != nil {
			return nil, fmt.Errorf("word %d of the command: %w", i, err)
		}
		argv = append(argv, value)
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("the command is empty")
	}
	return argv, nil
}

// findProgram returns the file to execute for a command's first word: one with
// a slash is looked up from the working directory, any other on the task's PATH.
func findProgram(name, dir, path string) (string, error) {
	if strings.Contains(name, "/") {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, name)
		}
		switch err := executable(file); {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("command %q not found in %s", name, dir)
		case err != nil:
			return "", fmt.Errorf("command %q in %s cannot be run: %w", name, dir, err)
		}
		return file, nil
	}
	for _, place := range filepath.SplitList(path) {
		if !filepath.IsAbs(place) {
			place = filepath.Join(dir, place)
		}
		if file := filepath.Join(place, name); executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("command %q not found on PATH (%s)", name, path)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	case info.Mode()&0o111 == 0:
		return errors.New("it is not executable (chmod +x helps)")
	}
	return nil
}
