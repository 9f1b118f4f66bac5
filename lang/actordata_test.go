package lang

// describedActor is an actor's block and the variables of its replica 1.
type describedActor struct {
	name string
	src  string
	want map[string]string // of actor_service.s[1]
}

func describedActors() []describedActor {
	return []describedActor{
		{
			name: "class only",
			src:  `actor { class = "serve.model:Model" }`,
			want: map[string]string{"CLASS": "serve.model:Model", "ARGS": "{}", "OPTIONS": "{}"},
		},
		{
			name: "types of arguments",
			src: `actor {
				class = "m:Outer.Inner"
				args  = { path = "a\u0000\"b", n = 3, big = 9007199254740993, rate = 0.1, on = true, none = null, list = [1, "x", []], deep = { a = { b = toset(["c"]) } } }
			}`,
			want: map[string]string{
				"CLASS": "m:Outer.Inner", "OPTIONS": "{}",
				"ARGS": `{"big":9007199254740993,"deep":{"a":{"b":["c"]}},"list":[1,"x",[]],"n":3,"none":null,"on":true,"path":"a\u0000\"b","rate":0.1}`,
			},
		},
		{
			name: "a replica's own, beside other variables",
			src: `environment { env = { A = "b", FRAY_ACTOR_CLASS = "not:This" } }
				actor {
					class           = "m:C"
					args            = { seed = count.index }
					max_concurrency = count.index + 7
					allow_pickle    = true
				}`,
			want: map[string]string{
				"A": "b", "CLASS": "m:C", "ARGS": `{"seed":1}`, "OPTIONS": `{"allow_pickle":true,"max_concurrency":8}`,
			},
		},
		{
			name: "concurrency groups",
			src:  "actor {\n class = \"m:C\"\n concurrency_groups = { io = 2 + 1, \"a b\" = 1 }\n max_concurrency = 2\n}",
			want: map[string]string{"CLASS": "m:C", "ARGS": "{}", "OPTIONS": `{"concurrency_groups":{"a b":1,"io":3},"max_concurrency":2}`},
		},
		{
			name: "no concurrency groups",
			src:  "actor {\n class = \"m:C\"\n concurrency_groups = {}\n}",
			want: map[string]string{"CLASS": "m:C", "ARGS": "{}", "OPTIONS": "{}"},
		},
		{
			name: "variables of its own, a shared actor",
			src:  "environment { env = { A = count.index } }\nactor { class = \"m:C\" }",
			want: map[string]string{"A": "1", "CLASS": "m:C", "ARGS": "{}", "OPTIONS": "{}"},
		},
		{
			name: "a program's actor",
			src:  "command = [\"./serve\"]\nactor {\n class = \"any name\"\n args = { \"any-name\" = 1 }\n}",
			want: map[string]string{"CLASS": "any name", "ARGS": `{"any-name":1}`, "OPTIONS": "{}"},
		},
		{
			name: "null arguments",
			src:  "actor {\n class = \"m:C\"\n args = null\n allow_pickle = false\n}",
			want: map[string]string{"CLASS": "m:C", "ARGS": "{}", "OPTIONS": `{"allow_pickle":false}`},
		},
		{
			name: "dynamic",
			src:  "dynamic \"actor\" {\n for_each = [\"m:C\"]\n content { class = actor.value }\n}",
			want: map[string]string{"CLASS": "m:C", "ARGS": "{}", "OPTIONS": "{}"},
		},
		{
			name: "known after apply, in part",
			src:  "actor {\n class = \"m:C\"\n args = { a = 1, b = job.j.id }\n}",
			want: map[string]string{"CLASS": "m:C", "ARGS": "(known after apply)", "OPTIONS": "{}"},
		},
	}
}
