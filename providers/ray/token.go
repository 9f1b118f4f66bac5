package ray

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// tokenPlaces is where people put a token.
const tokenPlaces = "put the cluster's token into RAY_AUTH_TOKEN, into a file that RAY_AUTH_TOKEN_PATH or token_file of provider \"ray\" names, or into ~/.ray/auth_token"

// tokenSource is where the token of a cluster is: in the file of the provider block, else where
// Ray itself finds it. It is read anew for each call, so that a new token is taken up.
type tokenSource struct {
	file string // of the provider block, "" without
}

// token is a secret, and where it is from, for people.
type token struct{ value, from string }

// read returns the token; an empty one where no place has one.
func (s tokenSource) read() (token, error) {
	if s.file != "" {
		return readToken(s.file, true)
	}
	if value := strings.TrimSpace(os.Getenv("RAY_AUTH_TOKEN")); value != "" {
		return token{value: value, from: "RAY_AUTH_TOKEN"}, nil
	}
	if path := os.Getenv("RAY_AUTH_TOKEN_PATH"); path != "" {
		return readToken(path, true)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return token{}, nil // there is no such file then
	}
	return readToken(filepath.Join(home, ".ray", "auth_token"), false)
}

func readToken(path string, required bool) (token, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !required {
		return token{}, nil
	}
	if err != nil {
		return token{}, failf(schema.ErrorPermission, "read the token of Ray: %w; %s", err, tokenPlaces)
	}
	return token{value: strings.TrimSpace(string(data)), from: path}, nil
}
