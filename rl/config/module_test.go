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

const sections = "../../library/nexrl/sections.hcl"

// TestN101_TheModuleHasEveryKey holds the variables of the module to the keys.
func TestN101_TheModuleHasEveryKey(t *testing.T) {
	want, diags := format.Source([]byte(moduleText()), "sections.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(sections), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(sections))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not as the keys say; run go test ./rl/config -update (-want +got):\n%s", sections, diff)
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
			validationText(out, key)
		}
	}
	for _, r := range rules() {
		if section, _, _ := strings.Cut(r.path, "."); section == name {
			fmt.Fprintf(out, "\nvalidation {\ncondition = %s\nerror_message = %q\n}\n", r.condition, r.path+": "+r.message)
		}
	}
	out.WriteString("}\n")
}

// rule is a validation that reads more than one key. Config.Check has each of them, too.
type rule struct{ path, condition, message string }

func rules() []rule {
	files := func(section string) []rule {
		v := "var." + section
		return []rule{
			{section + ".data_path", fmt.Sprintf(`%s.type == null ? true : %s.type == "mock" || strcontains(%s.type, ":") || %s.data_path != null`, v, v, v, v),
				"name the file or directory of the items, which all types but mock read."},
			{section + ".data_path", fmt.Sprintf(`%s.data_path == null || %s.type == "mock" || !var.check_paths ? true : (can(fileexists(%s.data_path)) ? fileexists(%s.data_path) || strcontains(%s.data_path, "://") : true)`, v, v, v, v, v),
				"there is no such file or directory. Write check_paths = false where only the hosts have it."},
		}
	}
	return slices.Concat(files("data"), files("validate.data"), []rule{
		{"launch_mode", `coalesce(var.launch_mode, "fray") != "ray"`,
			"the module starts jobs. To start roles on a Ray cluster, write a program with fray.rl.ResourceManager; for slices of a Ray cluster, write provider \"ray\"."},
		{"resume.resume_path", `var.resume.mode != "from_path" || var.resume.resume_path != null`, "mode from_path needs the directory global_step_N of a checkpoint."},
		{"resume.resume_path", `var.resume.resume_path == null || var.resume.mode != "from_path" || !var.check_paths ? true : (can(fileexists(var.resume.resume_path)) ? fileexists(var.resume.resume_path) || strcontains(var.resume.resume_path, "://") : true)`,
			"there is no such directory. Write check_paths = false where only the hosts have it."},
		{"weight.staleness_threshold", `coalesce(var.weight.staleness_threshold, 0) == 0 || var.weight.sync_mode == "batch-async"`,
			"only sync_mode batch-async has a threshold: leave it out, or set that mode."},
		{"weight.validate_freq", `coalesce(var.weight.validate_freq, 0) == 0 || local.validates`, "there are no data for validation: write validate.data with its type."},
		{"validate.validate_before_train", `!coalesce(var.validate.validate_before_train, false) || local.validates`, "there are no data for validation: write validate.data with its type."},
		{"trajectory_pool.batch_size", `local.own_code || !local.exact_batches || length(local.key_list) == 0 || coalesce(var.trajectory_pool.batch_size, 32) % local.group_size == 0`,
			"want a multiple of group_size, else a batch has a part of a group."},
		{"trajectory_pool.group_size", `local.own_code || !contains(local.key_list, "group_id") || coalesce(var.trajectory_pool.group_size, 1) <= local.repeat_item`,
			"no group would be complete, since each item is rolled out less often: set data.repeat_item to the same."},
		{"trajectory_pool.batch_size", `local.own_code || !local.exact_batches || !coalesce(var.data.keep_batch_order, false) || local.loaded >= coalesce(var.trajectory_pool.batch_size, 32)`,
			"no batch would be ready: with data.keep_batch_order the next data wait, and a loaded batch gives data.batch_size times data.repeat_item trajectories."},
		{"rollout_worker.tools", `alltrue([for tool in coalesce(var.rollout_worker.tools, []) : can(regex("^[^:/ ]+:[^:/ ]+$", tool))])`, "want module:name of functions."},
		{"service.train_service.class", `var.service.train_service.class == null ? true : can(regex("^[^:/ ]+:[^:/ ]+$", var.service.train_service.class))`, "want module:Class."},
		{"service.inference_service.class", `var.service.inference_service.class == null ? true : can(regex("^[^:/ ]+:[^:/ ]+$", var.service.inference_service.class))`, "want module:Class."},
		{"service.inference_service.url", `contains(["mock"], coalesce(var.rollout_worker.type, "simple")) || var.service.inference_service.url != null || local.counts.inference_service > 0`,
			"rollouts need an inference service: write its url, or the class of the role inference_service."},
		{"service.train_service.class", `contains(["mock"], coalesce(var.service.train_service.backend, "actor")) || strcontains(coalesce(var.service.train_service.backend, "actor"), ":") || var.service.train_service.url != null || local.counts.train_service > 0`,
			"training needs a train service: write the class of the role train_service, or another backend."},
	})
}

func objectType(n *node) string {
	var out strings.Builder
	out.WriteString("object({\n")
	open := false
	for _, name := range slices.Sorted(maps.Keys(n.children)) {
		child := n.children[name]
		if child.key == nil {
			fmt.Fprintf(&out, "%s = optional(%s, {})\n", name, objectType(child))
			continue
		}
		open = open || child.key.Kind == Class
		fmt.Fprintf(&out, "%s = optional(%s)\n", name, hclType(*child.key))
	}
	if open {
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
	case Text, Word, Class:
	}
	return "string"
}

// validationText is the block that rejects values which the check of a document rejects.
func validationText(out *strings.Builder, key Key) {
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
	case Text, Flag, Texts, Any:
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
