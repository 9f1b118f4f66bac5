package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// RegistryToken is how this machine logs in at one of Google's registries of
// images, by its service account
// (cloud.google.com/artifact-registry/docs/docker/authentication#token); "" and
// "" for any other registry, and where the machine has no account.
func RegistryToken(ctx context.Context, registry string) (user, password string, err error) {
	if !isGoogleRegistry(registry) {
		return "", "", nil
	}
	answer, err := newMetadataServer().get(ctx, "instance/service-accounts/default/token")
	if errors.Is(err, errNotDefined) {
		return "", "", nil
	}
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(answer.value), &token)
	}
	if err != nil {
		return "", "", fmt.Errorf("get a token for %s: %w", registry, err)
	}
	return "oauth2accesstoken", token.AccessToken, nil
}

func isGoogleRegistry(registry string) bool {
	return registry == "gcr.io" || strings.HasSuffix(registry, ".gcr.io") || strings.HasSuffix(registry, ".pkg.dev")
}
