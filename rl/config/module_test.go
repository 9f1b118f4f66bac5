package config

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/format"
)

var update = flag.Bool("update", false, "write library/nexrl/sections.hcl and the table of docs/guides/nexrl.md again")

const sectionFile = "../../library/nexrl/sections.hcl"

// TestN101_TheModuleHasEveryKey holds the variables of the module to the keys.
func TestN101_TheModuleHasEveryKey(t *testing.T) {
	want, diags := format.Source([]byte(moduleText()), "sections.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(sectionFile), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(sectionFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not as the keys say; run go test ./rl/config -update (-want +got):\n%s", sectionFile, diff)
	}
}

// moduleText is the file of the module with a variable for each section of the keys.
func moduleText() string {
	root := tree()
	var out strings.Builder
	out.WriteString("# Written by go test ./rl/config -update, from the keys of the configuration. Do not edit.\n")
	for _, name := range slices.Sorted(maps.Keys(root.children)) {
		if name != "roles" {
			variableText(&out, name, root.children[name])
		}
	}
	return out.String()
}

func variableText(out *strings.Builder, name string, n *node) {
	fmt.Fprintf(out, "\nvariable %q {\n", name)
	if n.key != nil {
		fmt.Fprintf(out, "type = %s\ndefault = null\ndescription = %q\n", hclType(*n.key), n.key.Meaning)
	} else {
		fmt.Fprintf(out, "type = %s\ndefault = {}\nnullable = false\ndescription = %q\n", objectType(n), "the section "+name+" of the configuration")
	}
	for _, key := range Keys() {
		if key.Path == name || strings.HasPrefix(key.Path, name+".") {
			validationText(out, key, classCondition(key.Path))
		}
	}
	all := rules()
	sections(name, n, func(path string, section *node) {
		if isClassSection(section) {
			all = append(all, argsRules(path, section)...)
		}
	})
	for _, r := range all {
		if section, _, _ := strings.Cut(r.path, "."); section == name {
			fmt.Fprintf(out, "\nvalidation {\ncondition = %s\nerror_message = %q\n}\n", r.condition, r.path+": "+r.message)
		}
	}
	out.WriteString("}\n")
}

// rule is a validation that reads more than one key. Config.Check has those that also hold without the module.
type rule struct{ path, condition, message string }

func rules() []rule {
	return slices.Concat(dataRules("data"), dataRules("validate.data"), optionRules(), serviceRules())
}

// dataRules are those of a data loader. fileexists is an error for a directory.
func dataRules(section string) []rule {
	v := "var." + section
	return []rule{
		{section + ".data_path", fmt.Sprintf(`%s.type == null ? true : %s.type == "mock" || strcontains(%s.type, ":") || %s.data_path != null`, v, v, v, v),
			"name the file or directory of the items, which all types but mock read."},
		{section + ".data_path", fmt.Sprintf(
			`%s.data_path == null || %s.type == null || %s.type == "mock" || !var.check_paths ? true : strcontains(%s.data_path, "://") || (%s.type == "jsonl" ? try(fileexists(%s.data_path), false) : %s.type == "directory" ? !can(fileexists(%s.data_path)) : try(fileexists(%s.data_path), true))`,
			v, v, v, v, v, v, v, v, v),
			"there is no such file or directory; jsonl reads a file, directory a directory. Write check_paths = false where only the hosts have it."},
	}
}

func optionRules() []rule {
	return []rule{
		{"launch_mode", `coalesce(var.launch_mode, "fray") != "ray"`,
			"the module starts jobs. To start roles on a Ray cluster, write a program with fray.rl.ResourceManager; for slices of a Ray cluster, write provider \"ray\"."},
		{"recovery", `coalesce(var.recovery, "journal") != "checkpoint" || coalesce(var.train_worker.save_freq, 0) > 0 || strcontains(coalesce(var.train_worker.type, "default"), ":")`,
			"checkpoint goes back to the run's checkpoints, of which there are none: set train_worker.save_freq to 1 or more, or leave recovery out."},
		{"resume.resume_path", `var.resume.mode != "from_path" || var.resume.resume_path != null`, "mode from_path needs the directory global_step_N of a checkpoint."},
		{"resume.resume_path", `var.resume.resume_path == null || var.resume.mode != "from_path" || !var.check_paths ? true : strcontains(var.resume.resume_path, "://") || !can(fileexists(var.resume.resume_path))`,
			"there is no such directory. Write check_paths = false where only the hosts have it."},
		{"weight.staleness_threshold", `coalesce(var.weight.staleness_threshold, 0) == 0 || var.weight.sync_mode == "batch-async"`,
			"only sync_mode batch-async has a threshold: leave it out, or set that mode."},
		{"weight.sync_mode", `local.own_pools || local.pools == 1 || coalesce(var.weight.sync_mode, "sync") != "sync"`,
			"in mode sync only the first batch after a sync is new enough, and those of further pools would be rolled out again: write one trajectory_pool, or batch-async with a staleness_threshold of at least one less than there are pools."},
		{"service.train_service.url", `var.service.train_service.url == null || strcontains(coalesce(var.service.train_service.backend, "actor"), ":")`, "only a TrainServiceClient of yours as backend, module:Class, reads it: leave it out."},
		{"service.train_service.identifier", `var.service.train_service.identifier == null || strcontains(coalesce(var.service.train_service.backend, "actor"), ":")`, "only a TrainServiceClient of yours as backend, module:Class, reads it: leave it out."},
		{"weight.validate_freq", `coalesce(var.weight.validate_freq, 0) == 0 || local.validates`, "there are no data for validation: write validate.data with its type."},
		{"validate.validate_before_train", `!coalesce(var.validate.validate_before_train, false) || local.validates`, "there are no data for validation: write validate.data with its type."},
		{"trajectory_pool.batch_size", `local.own_code || !local.exact_batches || length(local.key_list) == 0 || coalesce(var.trajectory_pool.batch_size, 32) % local.group_size == 0`,
			"want a multiple of group_size, else a batch has a part of a group."},
		{"trajectory_pool.group_size", `local.own_code || !contains(local.key_list, "group_id") || coalesce(var.trajectory_pool.group_size, 1) <= local.repeat_item`,
			"no group would be complete, since each item is rolled out less often: set data.repeat_item to the same."},
		{"trajectory_pool.batch_size", `local.own_code || !local.exact_batches || !coalesce(var.data.keep_batch_order, false) || local.loaded >= coalesce(var.trajectory_pool.batch_size, 32)`,
			"no batch would be ready: with data.keep_batch_order the next data wait, and a loaded batch gives data.batch_size times data.repeat_item trajectories."},
		{"rollout_worker.tools", `alltrue([for tool in coalesce(var.rollout_worker.tools, []) : can(regex("^[^:/ ]+:[^:/ ]+$", tool))])`, "want module:name of functions."},
		{"algorithm.kl_ctrl.kl_reward_coef", `var.algorithm.kl_ctrl.kl_reward_coef == null || var.algorithm.kl_ctrl.kl_coef == null`, "it is another name of kl_coef: write one of the two."},
	}
}

func serviceRules() []rule {
	return []rule{
		{"service.train_service.class", `var.service.train_service.class == null ? true : can(regex("^[^:/ ]+:[^:/ ]+$", var.service.train_service.class))`, "want module:Class."},
		{"service.inference_service.class", `var.service.inference_service.class == null ? true : can(regex("^[^:/ ]+:[^:/ ]+$", var.service.inference_service.class))`, "want module:Class."},
		{"service.inference_service.url", `contains(["mock"], coalesce(var.rollout_worker.type, "simple")) || var.service.inference_service.url != null || local.counts.inference_service > 0 && contains(keys(local.roles), "inference_service")`,
			"rollouts need an inference service: write its url, or the class of the role inference_service, with a count of at least 1."},
		{"service.train_service.backend", `coalesce(var.service.train_service.backend, "actor") != "nextrainer"`, noNextrainer + ". " + insteadOfNextrainer},
		{"service.train_service.class", `contains(["mock", "nextrainer"], coalesce(var.service.train_service.backend, "actor")) || strcontains(coalesce(var.service.train_service.backend, "actor"), ":") || var.service.train_service.class != null`,
			"training needs a train service: write the class of the role train_service, also where the role has a command, or another backend."},
	}
}

// argsRules are those of the keys that only a class of the user reads.
func argsRules(path string, n *node) []rule {
	v := "var." + path
	names := slices.Sorted(maps.Keys(n.children))
	known := make([]string, len(names))
	for i, name := range names {
		known[i] = fmt.Sprintf("%q", name)
	}
	set := "[" + strings.Join(known, ", ") + "]"
	return []rule{
		{path + ".args", fmt.Sprintf("can(keys(%s.args)) ? length(keys(%s.args)) == 0 || %s : false", v, v, classCondition(path+".args")),
			"want an object with the keys that your class reads, where a type, backend or class is module:Class: nothing else reads them."},
		{path + ".args", fmt.Sprintf("can(keys(%s.args)) ? alltrue([for key in keys(%s.args) : !contains(%s, key)]) : true", v, v, set),
			"write the keys of the section beside args, not in it."},
	}
}

// sections are the sections below a section, itself among them, each with its path.
func sections(path string, n *node, visit func(string, *node)) {
	if n.key != nil {
		return
	}
	visit(path, n)
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		sections(path+"."+name, n.children[name], visit)
	}
}

// classCondition is that a class of the user reads the section of a key, "" if none can.
func classCondition(path string) string {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return ""
	}
	at := tree()
	for name := range strings.SplitSeq(path[:i], ".") {
		at = at.children[name]
	}
	if !isClassSection(at) {
		return ""
	}
	var classes []string
	for _, name := range []string{"type", "backend", "class"} {
		if at.children[name] != nil {
			classes = append(classes, fmt.Sprintf(`strcontains(coalesce(var.%s.%s, "-"), ":")`, path[:i], name))
		}
	}
	return strings.Join(classes, " || ")
}

// isClassSection reports whether a section may have keys of a class of the user.
func isClassSection(n *node) bool {
	for _, child := range n.children {
		if child.key != nil && child.key.Kind == Class {
			return true
		}
	}
	return false
}

func objectType(n *node) string {
	var out strings.Builder
	out.WriteString("object({\n")
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		child := n.children[name]
		if child.key == nil {
			fmt.Fprintf(&out, "%s = optional(%s, {})\n", name, objectType(child))
			continue
		}
		fmt.Fprintf(&out, "%s = optional(%s)\n", name, hclType(*child.key))
	}
	if isClassSection(n) {
		out.WriteString("args = optional(any, {})\n")
	}
	out.WriteString("})")
	return out.String()
}

func hclType(key Key) string {
	switch key.Kind {
	case Whole, Number, Seconds:
		return "number"
	case Flag:
		return "bool"
	case Texts:
		return "list(string)"
	case Words, Any:
		return "any"
	case Text, File, Place, Word, Class:
	}
	return "string"
}

// validationText is the block that rejects values which the check of a document rejects. classes is the condition that a class of the
// user reads the section, "" if none can.
func validationText(out *strings.Builder, key Key, classes string) {
	v, condition := "var."+key.Path, ""
	words := make([]string, len(key.Words))
	for i, word := range key.Words {
		words[i] = fmt.Sprintf("%q", word)
	}
	set := "[" + strings.Join(words, ", ") + "]"
	switch key.Kind {
	case Word:
		condition = fmt.Sprintf("contains(%s, %s)", set, v)
	case Words:
		condition = fmt.Sprintf("length(setsubtract(flatten([%s]), %s)) == 0", v, set)
	case Class:
		condition = fmt.Sprintf("contains(%s, %s) || can(regex(\"^[^:/ ]+:[^:/ ]+$\", %s))", set, v, v)
	case Whole, Number, Seconds:
		condition = numberCondition(key, v)
	case Any:
		condition = fmt.Sprintf("can(keys(%s))", v)
	case File:
		condition = fmt.Sprintf(`!strcontains(%s, "://")`, v)
		if classes != "" {
			condition += " || " + classes
		}
	case Place:
		condition = fmt.Sprintf(`!strcontains(%s, "://") || can(regex("^gs://[^/]+/+[^/]", %s))`, v, v)
	case Text, Flag, Texts:
	}
	if condition == "" {
		return
	}
	fmt.Fprintf(out, "\nvalidation {\ncondition = %s == null ? true : %s\nerror_message = %q\n}\n", v, condition, fmt.Sprintf("%s: want %s.", key.Path, key.wanted()))
}

func numberCondition(key Key, v string) string {
	var parts []string
	switch {
	case key.Above:
		parts = append(parts, fmt.Sprintf("%s > %v", v, key.Low))
	case key.Kind == Whole || key.Low > 0:
		parts = append(parts, fmt.Sprintf("%s >= %v", v, key.Low))
	}
	if key.High > 0 {
		parts = append(parts, fmt.Sprintf("%s <= %v", v, key.High))
	}
	if key.Kind == Whole {
		parts = append(parts, fmt.Sprintf("floor(%s) == %s", v, v))
	}
	return strings.Join(parts, " && ")
}
