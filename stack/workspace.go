package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// ErrWorkspaceExists is the error of a workspace that is to be made and exists.
var ErrWorkspaceExists = errors.New("there is such a workspace already")

// marker is the content of workspaceKey, for people.
type marker struct {
	Workspace string    `json:"workspace"`
	MadeAt    time.Time `json:"made_at"`
	MadeBy    string    `json:"made_by"`
}

// Make makes the workspace, which is there as soon as its marker is.
func (at Site) Make(ctx context.Context) error {
	if at.IsDefault() {
		return fmt.Errorf("workspace %q: %w", at.Workspace, ErrWorkspaceExists)
	}
	where, err := at.Location()
	if err != nil {
		return err
	}
	if !where.InBucket() {
		if err := makeIgnored(at.Settings.Backend.Path); err != nil {
			return fmt.Errorf("make workspace %q: %w", at.Workspace, err)
		}
	}
	s, err := where.create(ctx)
	if err != nil {
		return fmt.Errorf("make workspace %q: %w", at.Workspace, err)
	}
	data, err := json.MarshalIndent(marker{Workspace: at.Workspace, MadeAt: time.Now().UTC(), MadeBy: UserAtHost()}, "", "  ")
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, WorkspaceKey, append(data, '\n'), store.Absent)
	if errors.Is(err, store.ErrConflict) {
		err = ErrWorkspaceExists
	}
	if err != nil {
		return fmt.Errorf("workspace %q: %w", at.Workspace, err)
	}
	return nil
}
