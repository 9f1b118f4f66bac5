package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// repetition is how a declaration becomes instances.
type repetition uint8

const (
	single  repetition = iota
	counted            // count, or the replicas of a service
	keyed              // for_each
)

// declaration is a block that has an address.
type declaration struct {
	addr       Address
	block      *block
	group      *declaration // the job group a job stands in
	jobs       []*declaration
	check      string // of a data block: the check that it stands in
	repetition repetition
	instances  []instance // once expanded
	dependsOn  []Address  // what must come first, as stated, sorted
	uses       []Address  // whose values it refers to, sorted
}

// instance is one expansion of a declaration.
type instance struct {
	key Key
	val cty.Value // of for_each
}

// local is one name of a locals block.
type local struct {
	name string
	x    *expression
}

// declarations is what a configuration declares, by name.
type declarations struct {
	fray       *block
	controller *block
	providers  map[ProviderName]*block
	variables  map[string]*block
	locals     map[string]*local
	outputs    map[string]*block
	things     map[Address]*declaration // by their address in the module
	calls      map[string]*declaration  // of modules
	data       map[string]*declaration  // by KIND.NAME
	checks     []*block
	moves      []*block
	imports    []*block
	removals   []*block
}

// declare sorts the blocks of a configuration by what they declare and reports
// what is declared twice.
func (r *report) declare(root *block) *declarations {
	d := &declarations{
		fray:       root.child("fray"),
		controller: root.child("controller"),
		providers:  map[ProviderName]*block{},
		variables:  map[string]*block{},
		locals:     map[string]*local{},
		outputs:    map[string]*block{},
		things:     map[Address]*declaration{},
		calls:      map[string]*declaration{},
		data:       map[string]*declaration{},
		checks:     root.blocks["check"],
		moves:      root.blocks["moved"],
		imports:    root.blocks["import"],
		removals:   root.blocks["removed"],
	}
	for _, b := range root.blocks["provider"] {
		if first := d.providers[ProviderName(b.name)]; first != nil {
			r.twice(b.rng(), "provider."+b.name, first.rng())
			continue
		}
		d.providers[ProviderName(b.name)] = b
	}
	r.declareNames(root.blocks["variable"], d.variables)
	r.declareNames(root.blocks["output"], d.outputs)
	for _, b := range root.blocks["locals"] {
		r.declareLocals(b, d)
	}
	for _, kind := range Kinds() {
		for _, b := range root.blocks[string(kind)] {
			r.declareThing(d, b, nil)
		}
	}
	for _, b := range root.blocks["module"] {
		r.declareRepeated(d.calls, b.name, b)
	}
	for _, b := range root.blocks["data"] {
		r.declareData(d, b, "")
	}
	r.declareChecks(d)
	return d
}

// declareRepeated declares a module call or a data block.
func (r *report) declareRepeated(into map[string]*declaration, name string, b *block) *declaration {
	if first := into[name]; first != nil {
		r.twice(b.rng(), b.typ.name+"."+name, first.block.rng())
		return nil
	}
	decl := &declaration{block: b, addr: Address{Kind: Kind(b.typ.name), Name: name}}
	r.repeat(decl)
	into[name] = decl
	return decl
}

func (r *report) declareData(d *declarations, b *block, check string) {
	if decl := r.declareRepeated(d.data, b.typ.variant+"."+b.name, b); decl != nil {
		decl.check = check
	}
}

func (r *report) declareChecks(d *declarations) {
	names := map[string]*block{}
	r.declareNames(d.checks, names)
	for _, b := range d.checks {
		for _, data := range b.blocks["data"] {
			r.declareData(d, data, b.name)
		}
		if len(b.blocks["assert"]) == 0 {
			r.errorAt(b.rng(), "Missing block", "A check needs at least one assert { … } with a condition and an error_message.")
		}
	}
}

func (r *report) twice(rng hcl.Range, name string, first hcl.Range) {
	r.errorAt(rng, "Declared twice", fmt.Sprintf("%s is declared at %s already. Rename one of the two, or remove it.", name, place(first)))
}

func (r *report) declareNames(blocks []*block, into map[string]*block) {
	for _, b := range blocks {
		if first := into[b.name]; first != nil {
			r.twice(b.rng(), b.typ.name+"."+b.name, first.rng())
			continue
		}
		into[b.name] = b
	}
}

func (r *report) declareLocals(b *block, d *declarations) {
	for _, name := range slices.Sorted(maps.Keys(b.attrs)) {
		if first := d.locals[name]; first != nil {
			r.twice(b.attrs[name].rng, "local."+name, first.x.rng)
			continue
		}
		d.locals[name] = &local{name: name, x: b.attrs[name]}
	}
}

func (r *report) declareThing(d *declarations, b *block, group *declaration) {
	addr := Address{Kind: Kind(b.typ.name), Name: b.name}
	if group != nil {
		addr.Group = group.addr.Name
	}
	if first := d.things[addr]; first != nil {
		r.twice(b.rng(), addr.String(), first.block.rng())
		return
	}
	decl := &declaration{addr: addr, block: b, group: group}
	r.repeat(decl)
	d.things[addr] = decl
	if group != nil {
		group.jobs = append(group.jobs, decl)
	}
	for _, child := range b.blocks[string(KindJob)] {
		r.declareThing(d, child, decl)
	}
}

// repeat finds how a declaration becomes instances.
func (r *report) repeat(decl *declaration) {
	count, each := decl.block.attr("count"), decl.block.attr("for_each")
	switch {
	case decl.addr.Kind == KindActorService:
		decl.repetition = counted
	case count != nil && each != nil:
		r.errorAt(each.rng, "Both count and for_each", fmt.Sprintf("%s is repeated by one of the two: remove the other.", capitalized(article(decl.block.typ.name))))
		decl.repetition = counted
	case count != nil:
		decl.repetition = counted
	case each != nil:
		decl.repetition = keyed
	}
}

// sorted returns the declarations of some kinds in address order.
func (d *declarations) sorted(kinds ...Kind) []*declaration {
	var found []*declaration
	for addr, decl := range d.things {
		if slices.Contains(kinds, addr.Kind) {
			found = append(found, decl)
		}
	}
	slices.SortFunc(found, func(a, b *declaration) int { return a.addr.Compare(b.addr) })
	return found
}

func (d *declarations) variableNames() []string { return slices.Sorted(maps.Keys(d.variables)) }

// names returns the declared names of a kind; of jobs, those of one group.
func (d *declarations) names(kind Kind, group string) []string {
	var names []string
	for addr := range d.things {
		if addr.Kind == kind && addr.Group == group {
			names = append(names, addr.Name)
		}
	}
	slices.Sort(names)
	return names
}

// dangling says that an address is not declared, and which one may be meant.
func (d *declarations) dangling(addr Address) string {
	detail := fmt.Sprintf("There is no %s. ", addr)
	var elsewhere []string
	for other := range d.things {
		if other.Name == addr.Name && (other.Kind == KindJob || other.Kind == KindActorService || other.Kind == KindJobGroup) {
			elsewhere = append(elsewhere, other.String())
		}
	}
	slices.Sort(elsewhere)
	if near := Nearest(addr.Name, d.names(addr.Kind, addr.Group)); near != "" {
		addr.Name = near
		return detail + fmt.Sprintf("Did you mean %s?", addr)
	}
	if len(elsewhere) > 0 {
		return detail + fmt.Sprintf("Did you mean %s?", strings.Join(elsewhere, " or "))
	}
	names := d.names(addr.Kind, addr.Group)
	if len(names) == 0 {
		return detail + fmt.Sprintf("No %s is declared: add the block %s.", addr.Kind, header(&blockType{name: string(addr.Kind), label: addr.Name}))
	}
	return detail + listed(addr, names)
}

// listed are the things of an address's kind and group that there are, by their
// addresses: a name alone is no reference.
func listed(addr Address, names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		addr.Name = name
		all[i] = addr.String()
	}
	return didYouMean("", all)
}

// indexed is how a reference chooses an instance; the replicas of a service are
// referred to as a whole.
func (d *declaration) indexed() repetition {
	if d.addr.Kind == KindActorService {
		return single
	}
	return d.repetition
}

// attributes lists what a reference to an instance can ask for.
func (d *declaration) attributes() []string {
	switch d.addr.Kind {
	case KindNamespace, KindReservation:
		return []string{"name", "addr", "slices"}
	case KindJobGroup:
		return []string{"name", "job"}
	case KindJob:
		return []string{"id", "name", "address", "addresses", "ports", "slices", "status"}
	case KindActorService:
		return []string{"name", "endpoints"}
	}
	return nil
}
