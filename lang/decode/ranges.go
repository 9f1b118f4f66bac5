package decode

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
)

// ranges records where everything with an address stands, unless it is canceled.
func (e *Decoder) ranges(into map[string]hcl.Range) {
	for addr, decl := range e.Decls.Addressed {
		if e.Canceled() {
			return
		}
		name := e.Global(addr).String()
		into[name] = decl.Block.Range()
		attributeRanges(into, name+"#", decl.Block)
	}
	if e.Parent != nil {
		into[e.Path] = e.Module.Call().Range()
		return
	}
	for name, b := range e.Decls.Outputs {
		into["output."+name] = b.Range()
	}
	for name, b := range e.Decls.Providers {
		into["provider."+string(name)] = b.Range()
		attributeRanges(into, "provider."+string(name)+"#", b)
	}
	if b := e.Decls.Controller; b != nil {
		into["controller"] = b.Range()
	}
	if b := e.Decls.Fray; b != nil {
		into["fray"] = b.Range()
		attributeRanges(into, "fray#", b)
	}
}

func attributeRanges(into map[string]hcl.Range, prefix string, b *configs.Block) {
	for name, x := range b.Attrs {
		into[prefix+name] = x.Range
	}
	for name, children := range b.Blocks {
		if children[0].Type.Repeated {
			continue // has an address of its own
		}
		into[prefix+name] = children[0].Range()
		attributeRanges(into, prefix+name+".", children[0])
	}
}
