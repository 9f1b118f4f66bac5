package policyfile

import (
	"github.com/fray-ml/fray/lang/language"
)

// Blocks of files of policies.
const (
	policyBlock   = "policy"
	setBlock      = "policy_set"
	variableBlock = "variable"
	localsBlock   = "locals"
	ruleBlock     = "rule"
)

// Type is the root of the table of files of policies.
func Type() *language.BlockType {
	typ := &language.BlockType{
		Name:   "the policy file",
		Blocks: []*language.BlockType{policyType(), setType()},
	}
	for _, name := range []string{variableBlock, localsBlock} {
		typ.Blocks = append(typ.Blocks, language.Root().Variants(name)...)
	}
	return typ
}

func policyType() *language.BlockType {
	return &language.BlockType{
		Name: policyBlock, Label: "NAME", Repeated: true,
		Doc: "rules that plans are held to",
		Attrs: []language.Attribute{
			{Name: "description", Type: "string", Doc: "what it is for, for people who meet it"},
			{Name: "severity", Type: "string", Default: "deny", Doc: "of a violation: deny, the plan is not carried out, or warn, it is shown", Values: severities()},
		},
		Blocks: []*language.BlockType{
			{
				Name: ruleBlock, Repeated: true,
				Doc: "a condition that the plan must meet",
				Attrs: []language.Attribute{
					{Name: "for_each", Type: "list, set or map", Doc: "check the condition for each of these, as each.key and each.value; a violation names the address of each.value"},
					{Name: "condition", Type: "bool", Required: true, Doc: "true if the rule is met; if it fails or is not known yet, the policy denies the plan"},
					{Name: "error_message", Type: "string", Required: true, Doc: "what is wrong, and what to change"},
				},
			},
			{
				Name: "override",
				Doc:  "who may carry a plan out although this policy denies it, with a reason on record; without it, no user may",
				Attrs: []language.Attribute{
					{Name: "users", Type: "list of strings", Required: true, Doc: "names of users, as ada or ada@host, or of CI actors; \"*\": all"},
				},
			},
		},
	}
}

func setType() *language.BlockType {
	return &language.BlockType{
		Name: setBlock, Label: "NAME", Repeated: true,
		Doc: "the policies of a directory or an archive; they are named NAME.POLICY",
		Attrs: []language.Attribute{
			{Name: "source", Type: "string", Required: true, Doc: "./DIR, or an archive such as gs://BUCKET/policies/NAME, which fray get installs", Mode: language.ModeConstant},
			{Name: "version", Type: "string", Default: "the newest", Doc: "of the archive: a version or a constraint such as ~> 1.2", Mode: language.ModeConstant},
			{Name: "inputs", Type: "map", Doc: "values of its variables: { NAME = VALUE }"},
			{Name: "policies", Type: "list of strings", Default: "all", Doc: "the names of those that hold"},
		},
	}
}
