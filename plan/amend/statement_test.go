package amend

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func addr(t *testing.T, s string) schema.Address {
	t.Helper()
	a, err := schema.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestEnclosingModules(t *testing.T) {
	tests := []struct {
		path string
		want []string
	}{
		{"", nil},
		{"module.a", []string{"module.a"}},
		{"module.a.module.b", []string{"module.a", "module.a.module.b"}},
		{`module.a["x.y[0]\"]"].module.b[3]`, []string{`module.a["x.y[0]\"]"]`, `module.a["x.y[0]\"]"].module.b[3]`}},
		{"module.a[12].module.b.module.c[0]", []string{"module.a[12]", "module.a[12].module.b", "module.a[12].module.b.module.c[0]"}},
	}
	for _, test := range tests {
		if got := enclosing(test.path); !slices.Equal(got, test.want) {
			t.Errorf("modules of %s: got %q, want %q", test.path, got, test.want)
		}
	}
}

func TestStatementRenames(t *testing.T) {
	tests := []struct{ from, to, what, want string }{ // want "": it stays
		{"job.a", "job.b", "job.a", "job.b"},
		{"job.a", "job.b", `job.a["k"]`, `job.b["k"]`},
		{"job.a", "job.b", "job.ab", ""},
		{"job.a", "job.a[0]", "job.a", "job.a[0]"},
		{"job.a", "job.a[0]", "job.a[0]", ""},
		{"job.a[0]", "job.a", "job.a[0]", "job.a"},
		{"job.a[0]", "job.a", "job.a[1]", ""},
		{"job.a", "module.m.job.a", "job.a[2]", "module.m.job.a[2]"},
		{"job.a", "job_group.g.job.a", "job.a", "job_group.g.job.a"},
		{"job_group.g", "module.m.job_group.h", "job_group.g.job.x[1]", "module.m.job_group.h.job.x[1]"},
		{"job_group.g", "job_group.h", "job_group.g", "job_group.h"},
		{"job_group.g", "job_group.h", "job.g", ""},
		{"module.a", "module.b", "module.a.namespace.n", "module.b.namespace.n"},
		{"module.a", "module.b", `module.a["k"].job.x`, `module.b["k"].job.x`},
		{"module.a", "module.b", "module.a.module.c[0].job_group.g.job.x", "module.b.module.c[0].job_group.g.job.x"},
		{"module.a", "module.b", "module.ab.job.x", ""},
		{"module.a", "module.b", "job.x", ""},
		{"module.a", `module.a["k"]`, "module.a.job.x", `module.a["k"].job.x`},
		{"module.a", `module.a["k"]`, `module.a["k"].job.x`, ""},
		{"module.a[0]", "module.b", "module.a[0].job.x", "module.b.job.x"},
		{"module.a[0]", "module.b", "module.a[1].job.x", ""},
		{"module.a[0]", "module.b", "module.a.job.x", ""},
		{"module.a", "module.p.module.b", "module.a.job.x", "module.p.module.b.job.x"},
	}
	for _, test := range tests {
		s := newStatement(addr(t, test.from), addr(t, test.to))
		got, moves := s.rename(addr(t, test.what))
		want := test.want
		if want == "" {
			want = test.what
		}
		if got.String() != want || moves != (test.want != "") {
			t.Errorf("%s to %s: %s became %s (moves: %t), want %s", test.from, test.to, test.what, got, moves, want)
		}
		// What moves is in the reach of the statement, and nothing else is.
		what := addr(t, test.what)
		if in := what == s.from || s.origin().reaches(what); in != moves {
			t.Errorf("%s to %s: %s is in reach: %t, and moves: %t", test.from, test.to, test.what, in, moves)
		}
	}
}
