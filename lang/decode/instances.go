package decode

import (
	"runtime"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/configs"
)

// manyInstances are worth to be decoded on all processors.
const manyInstances = 1000

// eachInstance has all instances of a block decoded, many of them on all processors where that
// makes no difference to what is decoded and reported.
func eachInstance(e *Decoder, decl *configs.Declaration, varying []part, decode func(e *Decoder, i int)) {
	n := len(decl.Instances)
	for i := range n {
		decode(e, i)
		if i == 0 && n >= manyInstances && isApart(e, decl.Block, varying) && sideBySide(e, n, decode) {
			return
		}
	}
}

// isApart reports whether the parts that differ between the instances of a block can be decoded
// for several of them at once, now that they were for one. Functions may read files, and are
// called for one after the other.
func isApart(e *Decoder, b *configs.Block, varying []part) bool {
	if e.Options.Partial || len(e.Diags) > 0 {
		return false
	}
	for _, p := range varying {
		if !p.alike || len(p.blocks) > 0 {
			return false
		}
		for _, name := range p.attrs {
			if x := b.Attr(name); x != nil && (x.Momentary || x.PerInstance && callsFunction(x.Hoisted)) {
				return false
			}
		}
	}
	return true
}

func callsFunction(expr hcl.Expression) bool {
	native, is := expr.(hclsyntax.Node)
	if !is {
		return true
	}
	found := false
	_ = hclsyntax.VisitAll(native, func(n hclsyntax.Node) hcl.Diagnostics {
		_, is := n.(*hclsyntax.FunctionCallExpr)
		found = found || is
		return nil
	})
	return found
}

// sideBySide has all instances but the first decoded on all processors. It reports false where
// there are mistakes in them, which are reported only by decoding one after the other.
func sideBySide(e *Decoder, n int, decode func(e *Decoder, i int)) bool {
	workers := make([]*Decoder, min(n, runtime.GOMAXPROCS(0)))
	var done sync.WaitGroup
	for w := range workers {
		own := *e
		own.Evaluator = e.Apart()
		workers[w] = &own
		done.Go(func() {
			for i := 1 + w*(n-1)/len(workers); i < 1+(w+1)*(n-1)/len(workers) && len(own.Diags) == 0; i++ {
				decode(&own, i)
			}
		})
	}
	done.Wait()
	return !slices.ContainsFunc(workers, func(w *Decoder) bool { return len(w.Diags) > 0 })
}
