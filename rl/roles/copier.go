package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/peer"
)

// actorCopier has inference services that are actors load weights.
type actorCopier struct {
	peers    peer.Peers
	services []string
	path     string
	timeout  time.Duration
}

// Copy calls update_weights(path, version) of all at once. Each has to answer in time.
func (c *actorCopier) Copy(ctx context.Context, _ rl.ModelTag, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return peer.ErrorOf("update_weights", peer.CallAll(ctx, c.peers, c.services, "update_weights", c.path, version))
}

// httpCopier has an inference service outside of the run load weights.
type httpCopier struct {
	url     string // of the service, as clients of OpenAI's protocol have it: a last "/v1" is not part of it
	path    string
	timeout time.Duration
}

// Copy posts {"path", "version"} to /update_weights.
func (c *httpCopier) Copy(ctx context.Context, _ rl.ModelTag, version int64) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	body, err := json.Marshal(map[string]any{"path": c.path, "version": version})
	if err != nil {
		return fmt.Errorf("update weights: %w", err)
	}
	address := strings.TrimSuffix(strings.TrimRight(c.url, "/"), "/v1") + "/update_weights"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("update weights: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("update weights: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return fmt.Errorf("update weights: POST %s: %s: %s", address, response.Status, bytes.TrimSpace(text))
	}
	return nil
}
