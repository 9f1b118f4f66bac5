package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/lang/format"
	"github.com/fray-ml/fray/rl"
)

const roleFile = "../../library/nexrl/roles.hcl"

// TestTheModuleHasEveryRole holds the variable roles of the module to the roles. Every role has validations of its own, so that an
// error names the line of the role.
func TestTheModuleHasEveryRole(t *testing.T) {
	want, diags := format.Source([]byte(rolesText()), "roles.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if *update {
		if err := os.WriteFile(filepath.FromSlash(roleFile), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(roleFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is not as the roles are; run go test ./rl/config -update (-want +got):\n%s", roleFile, diff)
	}
}

// roleType is what a call may write of a role.
const roleType = `optional(object({
count = optional(number)
colocation_group = optional(string)
command = optional(list(string))
reservation = optional(any)
resources = optional(object({
cpu = optional(number)
memory = optional(string)
disk = optional(string)
tpu = optional(string)
accelerators = optional(list(string))
machine_type = optional(string)
slices = optional(number)
preemptible = optional(bool)
zones = optional(list(string))
regions = optional(list(string))
gpu = optional(object({
type = optional(string)
count = optional(number)
}))
}), {})
health = optional(object({
enabled = optional(bool)
interval = optional(string)
timeout = optional(string)
threshold = optional(number)
start_period = optional(string)
}), {})
retries = optional(object({
failure = optional(number)
preemption = optional(number)
}), {})
env = optional(map(string), {})
}), {})
`

func rolesText() string {
	var out strings.Builder
	out.WriteString("# Written by go test ./rl/config -update, from the roles of a run. Do not edit.\n\nvariable \"roles\" {\ntype = object({\n")
	for _, role := range rl.Roles() {
		fmt.Fprintf(&out, "%s = %s", role, roleType)
	}
	out.WriteString("})\ndefault = {}\nnullable = false\ndescription = \"the roles that are not as usual: how many, where, and what they run\"\n")
	for _, role := range rl.Roles() {
		for _, r := range roleRules(role) {
			fmt.Fprintf(&out, "\nvalidation {\ncondition = %s\nerror_message = \"roles.%s.%s: %s\"\n}\n", r.condition, role, r.path, r.message)
		}
	}
	out.WriteString("}\n")
	return out.String()
}

// roleRules are the validations of one role. What a condition reads first of var.roles is the attribute whose line an error names.
func roleRules(role rl.Role) []rule {
	v := "var.roles." + string(role)
	rules := []rule{countRule(role)}
	if role == rl.RolloutWorker || role == rl.TrainWorker {
		rules = append(rules, rule{
			"count", fmt.Sprintf("%s.count == null || var.%s.num_workers == null ? true : %s.count == var.%s.num_workers", v, role, v, role),
			fmt.Sprintf("num_workers of the section %s is %s: write one of the two.", role, shownIn(fmt.Sprintf("coalesce(var.%s.num_workers, 0)", role))),
		})
	}
	if role != rl.TrainService && role != rl.InferenceService {
		rules = append(rules, rule{
			"resources.slices", fmt.Sprintf("%s.resources.slices == null ? true : %s.resources.slices == 1", v, v),
			"a role is one process. Only services may be gangs.",
		})
	}
	if role == rl.InferenceService {
		return append(rules, rule{
			"colocation_group", v + ".colocation_group == null",
			"an inference service has processes of its own, since rollout workers start once they know its address: leave the group out.",
		})
	}
	return append(rules, groupRules(role)...)
}

// groupRules are the validations of a role in a colocation group.
func groupRules(role rl.Role) []rule {
	v := "var.roles." + string(role)
	group := v + ".colocation_group"
	first := fmt.Sprintf("local.grouped[%s][0]", group)
	grouped := fmt.Sprintf(`%s == null || !contains(keys(local.roles), "%s") ? true : `, group, role)
	rules := []rule{
		{
			"colocation_group", fmt.Sprintf(`%s == null ? true : can(regex("^[a-z][a-z0-9_-]{0,39}$", %s)) && !can(regex("_[0-9]+$", %s)) && !contains(keys(var.roles), %s)`, group, group, group, group),
			"want a name of lowercase letters, digits, _ and - that is no role's, and that ends with no number after _.",
		},
		{
			"colocation_group", grouped + fmt.Sprintf("local.roles.%s.count == local.roles[%s].count", role, first),
			fmt.Sprintf("the group has %s of this role and %s of %s, and each of its processes has one of every role: write equal counts, or other groups.",
				shownIn(fmt.Sprintf("local.roles.%s.count", role)), shownIn(fmt.Sprintf("local.roles[%s].count", first)), shownIn(first)),
		},
		{
			"colocation_group", grouped + fmt.Sprintf("local.roles.%s.python == local.roles[%s].python", role, first),
			fmt.Sprintf("this role runs in %s and %s of the same group in %s, and a process runs one program: write other groups.",
				shownIn(fmt.Sprintf(`local.roles.%s.python ? "Python" : "Go"`, role)), shownIn(first), shownIn(fmt.Sprintf(`local.roles[%s].python ? "Python" : "Go"`, first))),
		},
		{
			"command", fmt.Sprintf("%s.command == null || %s == null", v, group),
			"the processes of a colocation group run fray's program, or that of fray.rl: leave the command out, or the group.",
		},
	}
	for _, part := range []string{"resources", "reservation", "health", "retries"} {
		stated := fmt.Sprintf("alltrue([for value in values(%s.%s) : value == null])", v, part)
		if part == "reservation" {
			stated = v + ".reservation == null"
		}
		owner := fmt.Sprintf("local.owners[%s].%s", group, part)
		rules = append(rules, rule{
			part, fmt.Sprintf(`%s || try(%s == "%s", true)`, stated, owner, role),
			fmt.Sprintf("%s of the same colocation group has them: one role states the %s of its processes.", shownIn(owner), part),
		})
	}
	return rules
}

// shownIn is the value of an expression in an error_message, which is evaluated also where the condition holds.
func shownIn(expression string) string { return fmt.Sprintf(`${try(%s, "")}`, expression) }

// countRule is how many of a role there may be, as Config.Check has it.
func countRule(role rl.Role) rule {
	count := fmt.Sprintf("var.roles.%s.count", role)
	allowed, message := fmt.Sprintf("%s >= 0 && floor(%s) == %s", count, count, count), "want a whole number from 0."
	switch role {
	case rl.RolloutWorker, rl.TrainWorker, rl.AlgorithmProcessor, rl.TrajectoryPool:
		allowed, message = fmt.Sprintf("%s >= 1 && floor(%s) == %s", count, count, count), "want a whole number from 1."
	case rl.TrainBatchPool, rl.WeightSyncController, rl.DataLoader, rl.Controller:
		allowed, message = count+" == 1", "a run has one: leave the count out."
	case rl.ValidateDataLoader, rl.Validator:
		allowed, message = fmt.Sprintf("%s == local.counts.%s", count, role), fmt.Sprintf("a run has one with validate.data.type and none without: leave the count out, this run has ${local.counts.%s}.", role)
	case rl.ActivityTracker, rl.ExperimentLogger:
		allowed, message = fmt.Sprintf("contains([0, 1], %s)", count), "a run has at most one."
	case rl.TrainService, rl.InferenceService:
	}
	return rule{"count", fmt.Sprintf("%s == null ? true : %s", count, allowed), message}
}
