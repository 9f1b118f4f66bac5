package schema

// ModuleStep is one module of the path of an address.
type ModuleStep struct {
	Base string // its path without its own key, "module.a[0].module.b"
	Key  Key
}

// ModulePath are the modules that an address stands in, the outer ones first.
func (a Address) ModulePath() []ModuleStep {
	steps, err := addressSteps(make([]addressStep, 0, usualSteps), a.Module)
	if err != nil {
		return nil // in none
	}
	found := make([]ModuleStep, 0, len(steps))
	path := ""
	for _, step := range steps {
		found = append(found, ModuleStep{Base: JoinModule(path, step.name, Key{}), Key: step.key})
		path = JoinModule(path, step.name, step.key)
	}
	return found
}

// StaticModule is the module that an address stands in, without the keys of its
// instances.
func (a Address) StaticModule() string {
	steps, err := addressSteps(make([]addressStep, 0, usualSteps), a.Module)
	if err != nil {
		return a.Module // of no module
	}
	path := ""
	for _, step := range steps {
		path = JoinModule(path, step.name, Key{})
	}
	return path
}
