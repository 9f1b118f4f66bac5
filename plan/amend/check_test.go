package amend_test

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
)

func TestCheckRefuses(t *testing.T) {
	desired := files([]schema.Job{
		at(t, "job.one"), at(t, "job.many[0]"), at(t, "job.many[1]"), at(t, "job_group.g.job.x"), at(t, `module.m["k"].job.in`),
	}, pool("p", 1))
	const line2 = "main.hcl line 1"
	tests := []struct {
		name   string
		blocks []string
		says   []string // of the only error
	}{
		{"still declared", []string{"job.one -> job.two"}, []string{"Moved and still declared", "job.one is still declared (jobs.hcl line 3)", "as job.two instead"}},
		{"instances still declared", []string{"job.many -> job.two"}, []string{"job.many[0] is still declared"}},
		{"group still declared", []string{"job_group.g -> job_group.h"}, []string{"job_group.g is still declared"}},
		{"module still declared", []string{"module.m -> module.n"}, []string{`module.m["k"].job.in is still declared`}},
		{"module instance still declared", []string{`module.m["k"] -> module.n`}, []string{`module.m["k"].job.in is still declared`}},
		{"the same", []string{"job.a -> job.a"}, []string{"Impossible move", "these are the same"}},
		{"other kind", []string{"job.a -> actor_service.b"}, []string{"a job cannot become an actor_service"}},
		{"module to job", []string{"module.a -> job.b"}, []string{"a module can only become a module"}},
		{"into itself", []string{"module.a -> module.a.module.b"}, []string{"is in module.a itself"}},
		{"from one", []string{"job.a -> job.b", "job.a -> job.c"}, []string{"Moves in conflict", line2, "job.a moves to job.b"}},
		{"to one", []string{"job.a -> job.c", "job.b -> job.c"}, []string{"Moves in conflict", line2, "job.a moves to job.c"}},
		{"circle", []string{"job.a -> job.b", "job.c -> job.a", "job.b -> job.c"},
			[]string{"Moves in a circle", "main.hcl line 1", "main.hcl line 2", "main.hcl line 3"}},
		{"circle through a module", []string{"module.a -> module.b", "module.b.job.x -> module.a.job.x"}, []string{"Moves in a circle"}},
		{"removed and declared", []string{"forget job.many"}, []string{"Removed and still declared", "job.many[0] is still declared"}},
		{"removed in two ways", []string{"forget module.a", "destroy module.a.job.x"}, []string{"Removed in two ways", line2}},
		{"import to nothing", []string{"import job.on s1"}, []string{"Cannot be imported", "Did you mean job.one?"}},
		{"import to many", []string{"import job.many s1"}, []string{"Cannot be imported", "such as job.many[0]"}},
		{"import to a group", []string{"import job_group.g s1"}, []string{"Cannot be imported"}},
		{"import of nothing", []string{"import job.one ,"}, []string{"Cannot be imported"}},
		{"imported twice", []string{"import job.one s1", "import job.one s2"}, []string{"Imported twice", line2}},
		{"slice twice", []string{"import job.one s1", "import job.many[0] s2,s1"}, []string{"Imported twice", "Slice s1", line2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			diags := amend.Check(written(t, desired, test.blocks...))
			if len(diags) != 1 || diags[0].Subject == nil {
				t.Fatalf("got %v, want one error with a place", diags)
			}
			for _, says := range test.says {
				if text := diags[0].Summary + ": " + diags[0].Detail; !strings.Contains(text, says) {
					t.Errorf("got %q, want it to say %q", text, says)
				}
			}
		})
	}
}

func TestCheckAllows(t *testing.T) {
	desired := files([]schema.Job{at(t, "job.one"), at(t, "job.many[0]"), at(t, `module.m["k"].job.in`)}, pool("p", 1))
	cfg := written(t, desired, "job.many -> job.many[0]", "job.many[1] -> job.one", "job.a -> job.b", "job.a -> job.b", "job.b -> job.one[0]",
		"module.m -> module.m[\"k\"]", "module.k -> module.m", "module.k.job.x -> module.m.job.x", "destroy job.many[7]", "forget job.old",
		"import job.one s1,s2", "import reservation.p s3")
	if diags := amend.Check(cfg); len(diags) > 0 {
		t.Errorf("got %v, want nothing wrong", diags)
	}
}
