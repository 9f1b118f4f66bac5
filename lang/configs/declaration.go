package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// HostsActor reports whether an actor block stands in a declaration, or may.
func (d *Declaration) HostsActor() bool {
	return d.Block.Child(language.ActorBlock) != nil ||
		slices.ContainsFunc(d.Block.Dynamics, func(d *Dynamic) bool { return d.Type.Name == language.ActorBlock })
}

// Repetition is how a declaration becomes instances.
type Repetition uint8

// The repetitions.
const (
	Single  Repetition = iota
	Counted            // count, or the replicas of a service
	Keyed              // for_each
)

// Declaration is a block that has an address.
type Declaration struct {
	Addr       schema.Address
	Block      *Block
	Group      *Declaration   // the job group that it stands in
	Members    []*Declaration // of a job group
	Check      string         // of a data block: the check that it stands in
	Repetition Repetition
	Instances  []Instance       // once expanded
	DependsOn  []schema.Address // what must come first, as stated, sorted
	Uses       []schema.Address // whose values it refers to, sorted
}

// local is one name of a locals block.
type local struct {
	name       string
	Expression *Expression
}

// Declarations is what a configuration declares, by name.
type Declarations struct {
	Fray       *Block
	Controller *Block
	Providers  map[schema.ProviderName]*Block
	Variables  map[string]*Block
	Locals     map[string]*local
	Outputs    map[string]*Block
	Addressed  map[schema.Address]*Declaration // by their address in the module
	Calls      map[string]*Declaration         // of modules
	Data       map[string]*Declaration         // by KIND.NAME
	Checks     []*Block
	Moves      []*Block
	Imports    []*Block
	Removals   []*Block
}

// declare sorts the blocks of a configuration by what they declare and reports
// what is declared twice.
func (r Checker) declare(root *Block) *Declarations {
	d := &Declarations{
		Fray:       root.Child("fray"),
		Controller: root.Child("controller"),
		Providers:  map[schema.ProviderName]*Block{},
		Variables:  map[string]*Block{},
		Locals:     map[string]*local{},
		Outputs:    map[string]*Block{},
		Addressed:  map[schema.Address]*Declaration{},
		Calls:      map[string]*Declaration{},
		Data:       map[string]*Declaration{},
		Checks:     root.Blocks["check"],
		Moves:      root.Blocks["moved"],
		Imports:    root.Blocks["import"],
		Removals:   root.Blocks["removed"],
	}
	for _, b := range root.Blocks["provider"] {
		if first := d.Providers[schema.ProviderName(b.Name)]; first != nil {
			r.twice(b.Range(), "provider."+b.Name, first.Range())
			continue
		}
		d.Providers[schema.ProviderName(b.Name)] = b
	}
	r.DeclareNames(root.Blocks["variable"], d.Variables)
	r.DeclareNames(root.Blocks["output"], d.Outputs)
	for _, b := range root.Blocks["locals"] {
		r.declareLocals(b, d)
	}
	for _, kind := range schema.Kinds() {
		for _, b := range root.Blocks[string(kind)] {
			r.declareAddressed(d, b, nil)
		}
	}
	for _, b := range root.Blocks["module"] {
		r.declareRepeated(d.Calls, b.Name, b)
	}
	for _, b := range root.Blocks["data"] {
		r.declareData(d, b, "")
	}
	r.declareChecks(d)
	return d
}

// declareRepeated declares a module call or a data block.
func (r Checker) declareRepeated(into map[string]*Declaration, name string, b *Block) *Declaration {
	if first := into[name]; first != nil {
		r.twice(b.Range(), b.Type.Name+"."+name, first.Block.Range())
		return nil
	}
	decl := &Declaration{Block: b, Addr: schema.Address{Kind: schema.Kind(b.Type.Name), Name: name}}
	r.repeat(decl)
	into[name] = decl
	return decl
}

func (r Checker) declareData(d *Declarations, b *Block, check string) {
	if decl := r.declareRepeated(d.Data, b.Type.Variant+"."+b.Name, b); decl != nil {
		decl.Check = check
	}
}

func (r Checker) declareChecks(d *Declarations) {
	names := map[string]*Block{}
	r.DeclareNames(d.Checks, names)
	for _, b := range d.Checks {
		for _, data := range b.Blocks["data"] {
			r.declareData(d, data, b.Name)
		}
		if len(b.Blocks["assert"]) == 0 {
			r.ErrorAt(b.Range(), "Missing block", "A check needs at least one assert { … } with a condition and an error_message.")
		}
	}
}

func (r Checker) twice(rng hcl.Range, name string, first hcl.Range) {
	r.ErrorAt(rng, "Declared twice", fmt.Sprintf("%s is declared at %s already. Rename one of the two, or remove it.", name, diagnose.Place(first)))
}

// DeclareNames puts named blocks into a map, and reports names that stand twice.
func (r Checker) DeclareNames(blocks []*Block, into map[string]*Block) {
	for _, b := range blocks {
		if first := into[b.Name]; first != nil {
			r.twice(b.Range(), b.Type.Name+"."+b.Name, first.Range())
			continue
		}
		into[b.Name] = b
	}
}

func (r Checker) declareLocals(b *Block, d *Declarations) {
	for _, name := range slices.Sorted(maps.Keys(b.Attrs)) {
		if first := d.Locals[name]; first != nil {
			r.twice(b.Attrs[name].Range, "local."+name, first.Expression.Range)
			continue
		}
		d.Locals[name] = &local{name: name, Expression: b.Attrs[name]}
	}
}

func (r Checker) declareAddressed(d *Declarations, b *Block, group *Declaration) {
	addr := schema.Address{Kind: schema.Kind(b.Type.Name), Name: b.Name}
	if group != nil {
		addr.Group = group.Addr.Name
	}
	if first := d.Addressed[addr]; first != nil {
		r.twice(b.Range(), addr.String(), first.Block.Range())
		return
	}
	decl := &Declaration{Addr: addr, Block: b, Group: group}
	r.repeat(decl)
	d.Addressed[addr] = decl
	if group != nil {
		group.Members = append(group.Members, decl)
	}
	for _, kind := range schema.GroupMembers() {
		for _, child := range b.Blocks[string(kind)] {
			r.declareAddressed(d, child, decl)
		}
	}
}

// repeat finds how a declaration becomes instances.
func (r Checker) repeat(decl *Declaration) {
	count, each := decl.Block.Attr("count"), decl.Block.Attr("for_each")
	switch {
	case decl.Addr.Kind == schema.KindActorService:
		decl.Repetition = Counted
	case count != nil && each != nil:
		r.ErrorAt(each.Range, "Both count and for_each", fmt.Sprintf("%s is repeated by one of the two: remove the other.", diagnose.Capitalized(diagnose.Article(decl.Block.Type.Name))))
		decl.Repetition = Counted
	case count != nil:
		decl.Repetition = Counted
	case each != nil:
		decl.Repetition = Keyed
	}
}

// Sorted returns the declarations of some kinds in address order.
func (d *Declarations) Sorted(kinds ...schema.Kind) []*Declaration {
	var found []*Declaration
	for addr, decl := range d.Addressed {
		if slices.Contains(kinds, addr.Kind) {
			found = append(found, decl)
		}
	}
	slices.SortFunc(found, func(a, b *Declaration) int { return a.Addr.Compare(b.Addr) })
	return found
}

// VariableNames returns the names of the variables, sorted.
func (d *Declarations) VariableNames() []string { return slices.Sorted(maps.Keys(d.Variables)) }

// names returns the declared names of a kind within one group, or at the top level.
func (d *Declarations) names(kind schema.Kind, group string) []string {
	var names []string
	for addr := range d.Addressed {
		if addr.Kind == kind && addr.Group == group {
			names = append(names, addr.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Dangling is the message for an address that is not declared, with suggestions.
func (d *Declarations) Dangling(addr schema.Address) string {
	detail := fmt.Sprintf("There is no %s. ", addr)
	var elsewhere []string
	for other := range d.Addressed {
		if other.Name == addr.Name && other.Kind != schema.KindNamespace {
			elsewhere = append(elsewhere, other.String())
		}
	}
	slices.Sort(elsewhere)
	if near := schema.Nearest(addr.Name, d.names(addr.Kind, addr.Group)); near != "" {
		addr.Name = near
		return detail + fmt.Sprintf("Did you mean %s?", addr)
	}
	if len(elsewhere) > 0 {
		return detail + fmt.Sprintf("Did you mean %s?", strings.Join(elsewhere, " or "))
	}
	names := d.names(addr.Kind, addr.Group)
	if len(names) == 0 {
		return detail + fmt.Sprintf("No %s is declared: add the block %s.", addr.Kind, language.Header(&language.BlockType{Name: string(addr.Kind), Label: addr.Name}))
	}
	return detail + listed(addr, names)
}

// listed suggests the declared addresses of addr's kind and group: a name alone is
// not a reference.
func listed(addr schema.Address, names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		addr.Name = name
		all[i] = addr.String()
	}
	return diagnose.DidYouMean("", all)
}

// Indexed is how a reference chooses an instance; the replicas of a service are
// referred to as a whole.
func (d *Declaration) Indexed() Repetition {
	if d.Addr.Kind == schema.KindActorService {
		return Single
	}
	return d.Repetition
}

// Attributes lists what a reference to an instance can ask for.
func (d *Declaration) Attributes() []string {
	switch d.Addr.Kind {
	case schema.KindNamespace, schema.KindReservation:
		return []string{"name", "addr", "slices"}
	case schema.KindNotification:
		return []string{"name", "addr"}
	case schema.KindJobGroup:
		return []string{"name", "job", "actor_service", "reservation"}
	case schema.KindJob:
		return []string{"id", "name", "address", "addresses", "ports", "slices", "status"}
	case schema.KindActorService:
		return []string{"name", "endpoints"}
	}
	return nil
}
