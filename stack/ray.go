package stack

import (
	"fmt"
	"path/filepath"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/ray"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// rayCluster is the provider of a Ray cluster, nil where none is declared and nothing is there.
func (s *Stack) rayCluster(declared []schema.Provider, doc *state.Document) (providers.Provider, error) {
	block := rayOf(declared, doc)
	if block == nil {
		return nil, nil
	}
	if err := sameCluster(block, doc); err != nil {
		return nil, err
	}
	return ray.New(ray.Config{
		Address: block.Address, Namespace: block.RayNamespace, TokenFile: block.TokenFile,
		Program: release.AgentProgram, StoreLocation: string(s.At), KeyFile: s.sharedKey(), Workspace: s.Named(),
	})
}

// sharedKey is the file of the stack's key beside its state, "" where agents read it in the store.
func (s *Stack) sharedKey() string {
	if s.At.InBucket() {
		return ""
	}
	if file := s.Keys.agentFile(); filepath.Dir(file) == s.Root {
		return file
	}
	return ""
}

// rayOf is the provider block of Ray, nil where nothing is there and nothing is declared.
func rayOf(declared []schema.Provider, doc *state.Document) *schema.Provider {
	if doc != nil && len(declared) == 0 {
		declared = doc.Desired.Providers
	}
	if found := providerNamed(declared, schema.ProviderRay); found != nil {
		return found
	}
	if doc == nil || !hasSlicesOn(doc, schema.ProviderRay) {
		return nil
	}
	return providerNamed(doc.Desired.Providers, schema.ProviderRay)
}

func providerNamed(declared []schema.Provider, name schema.ProviderName) *schema.Provider {
	for i := range declared {
		if declared[i].Name == name {
			return &declared[i]
		}
	}
	return nil
}

func hasSlicesOn(doc *state.Document, name schema.ProviderName) bool {
	for _, s := range doc.Slices {
		if s.Spec.Provider == name {
			return true
		}
	}
	return false
}

// sameCluster rejects another address while there are slices at the one before: they would be
// searched in the wrong place, and their agents would run on.
func sameCluster(block *schema.Provider, doc *state.Document) error {
	if doc == nil || !hasSlicesOn(doc, schema.ProviderRay) {
		return nil
	}
	was := providerNamed(doc.Desired.Providers, schema.ProviderRay)
	if was == nil || was.Address == block.Address || was.Address == "" {
		return nil
	}
	return fmt.Errorf("the stack has slices on the Ray cluster at %s, and the provider block names %s: set it back and run fray destroy first", was.Address, block.Address)
}
