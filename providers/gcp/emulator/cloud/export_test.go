package cloud

// ArgumentNames are the arguments that a scenario takes at its top.
func ArgumentNames() []string {
	var names []string
	for _, f := range scenarioFields(&Scenario{}) {
		names = append(names, f.name)
	}
	return names
}
