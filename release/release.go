package release

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// version is stamped by the linker (see the Makefile).
var version = ""

// Version is the stamped version, else what the Go toolchain recorded.
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "0.1.0-dev"
}

// CacheDir is where environments are kept warm for all stacks of this user.
func CacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a cache directory (set XDG_CACHE_HOME or HOME): %w", err)
	}
	return filepath.Join(base, "fray"), nil
}
