// Command bench measures fray and prints each number beside what it is to be
// compared with. It asserts nothing: numbers on a shared machine are for people.
//
//	go run ./bench [flags] [startup | quickstart | plan | apply | recovery | language | planning | state | gcp | cluster | launch | failover | actors | python | streams | actorlife | ray | engines | rl | rlexample | store | scale | sidebyside]...
//
// Without names it runs everything, as `make bench` does. What needs much memory
// runs in a process of its own, which is this program again (one.go): the peak
// of a process that was started counts from that of the one which started it.
// Start with parts, the list of what is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// bench is one run: the binary under test, a scratch directory, and the table.
type bench struct {
	ctx  context.Context
	fray string
	self string // this program
	dir  string
	root string // of the project
	opts options
	out  *tabwriter.Writer
	log  io.Writer // progress
}

// options are the flags.
type options struct {
	tasks    int             // of the part "state"
	hosts    []int           // of the part "scale"
	profiles string          // of its controllers
	sizes    []int           // of the part "sidebyside"
	growth   []int           // further sizes of ours alone
	shapes   []shape         // likewise
	limit    time.Duration   // of one command
	million  bool            // planning: also a million jobs
	mail     mailboxLocation // where ours keeps its mailbox
	link     link            // of our jobs
	parts    []string
}

// part is something to measure, by name.
type part struct {
	name    string
	columns []string // nil: it prints tables of its own
	do      func() error
}

func (b *bench) parts() []part {
	columns := []string{"WHAT", "MEASURED", "TARGET", "BESIDE"}
	language, cluster, actors, side := languageBench{b}, clusterBench{b}, actorBench{b}, sideBench{b}
	engines := engineBench{actors}
	return []part{
		{"startup", columns, b.startup},
		{"quickstart", columns, b.quickstart},
		{"plan", columns, b.plans},
		{"apply", columns, b.applies},
		{"recovery", columns, b.recoveries},
		{"language", columns, language.languages},
		{"planning", columns, language.planning},
		{"state", columns, b.states},
		{"gcp", columns, b.gcps},
		{"cluster", columns, cluster.clusters},
		{"launch", columns, cluster.launching},
		{"failover", columns, cluster.failover},
		{"actors", columns, actors.actorCalls},
		{"python", columns, actors.pythonCalls},
		{"streams", columns, actors.streams},
		{"actorlife", columns, actors.actorLife},
		{"ray", columns, actors.besideRay},
		{"engines", columns, engines.engines},
		{"rl", columns, b.roles},
		{"rlexample", columns, b.rlExample},
		{"store", columns, b.storeRequests},
		{"scale", columns, b.scaled},
		{"sidebyside", nil, side.sideBySide},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == oneArg {
		return runOne(ctx, args[1:], os.Stdout)
	}
	opts, err := parseOptions(args)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fray-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b := &bench{
		ctx: ctx, dir: dir, root: root, fray: filepath.Join(dir, "fray"), self: self, opts: opts,
		out: tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0), log: os.Stderr,
	}
	return b.run()
}

func (b *bench) run() error {
	if !slices.Equal(b.opts.parts, []string{"scale"}) { // which runs no command
		if err := b.build(); err != nil {
			return err
		}
	}
	headed := false
	for _, p := range b.parts() {
		if len(b.opts.parts) > 0 && !slices.Contains(b.opts.parts, p.name) {
			continue
		}
		if p.columns != nil && !headed {
			b.row(p.columns...)
			headed = true
		}
		if err := p.do(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := b.out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) build() error {
	build := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", b.fray, "./cmd/fray")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build fray: %w\n%s", err, out)
	}
	return nil
}

// parseOptions reads flags and names of parts.
func parseOptions(args []string) (options, error) {
	o := options{
		sizes: []int{100, 1_000, 5_000}, growth: []int{10_000, 20_000, 50_000}, hosts: []int{1_000},
		shapes: allShapes(), mail: mailboxInMemory, link: linkValue,
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.Func("hosts", "scale: `numbers` of hosts (default 1000)", sizesInto(&o.hosts))
	flags.StringVar(&o.profiles, "profiles", "", "scale: write profiles of the controllers to this `directory`")
	flags.IntVar(&o.tasks, "tasks", 10_000, "state: `number` of tasks")
	flags.BoolVar(&o.million, "million", false, "planning: also plan a million jobs, which takes ten times the memory of 100,000")
	flags.Func("n", "sidebyside: `sizes`, ours and theirs (default 100,1000,5000)", sizesInto(&o.sizes))
	flags.Func("grow", "sidebyside: further `sizes`, ours alone; \"\" for none (default 10000,20000,50000)", sizesInto(&o.growth))
	flags.DurationVar(&o.limit, "limit", 15*time.Minute, "sidebyside: a command that takes longer than this `time` is ended")
	flags.Func("shape", fmt.Sprintf("sidebyside: `shapes` of %q (default all)", allShapes()), func(s string) error {
		o.shapes = nil
		for name := range strings.SplitSeq(s, ",") {
			if err := oneOf(shape(name), allShapes()...); err != nil {
				return err
			}
			o.shapes = append(o.shapes, shape(name))
		}
		return nil
	})
	flags.Func("mailbox", "sidebyside: where ours keeps its mailbox with the simulated agents, `memory or dir` (default memory)", func(s string) error {
		o.mail = mailboxLocation(s)
		return oneOf(o.mail, mailboxInMemory, mailboxInDir)
	})
	flags.Func("link", "sidebyside: how one of our jobs waits for another, by `value or order` (default value)", func(s string) error {
		o.link = link(s)
		return oneOf(o.link, linkValue, linkOrder)
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.parts = flags.Args()
	return o, o.validate()
}

func (o *options) validate() error {
	var names []string
	for _, p := range new(bench).parts() {
		names = append(names, p.name)
	}
	for _, name := range o.parts {
		if err := oneOf(name, names...); err != nil {
			return err
		}
	}
	if o.tasks < 1 || o.limit <= 0 {
		return errors.New("-tasks and -limit must be above 0")
	}
	if len(o.sizes)+len(o.growth) == 0 {
		return errors.New("-n and -grow leave nothing to measure")
	}
	return nil
}

func oneOf[T ~string](s T, known ...T) error {
	if !slices.Contains(known, s) {
		return fmt.Errorf("there is no %q, only %q", s, known)
	}
	return nil
}

func sizesInto(sizes *[]int) func(string) error {
	return func(s string) error {
		*sizes = nil
		for number := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' }) {
			var n int
			if _, err := fmt.Sscan(number, &n); err != nil || n < 10 || n%10 != 0 {
				return fmt.Errorf("%q is no size: want multiples of ten", number)
			}
			*sizes = append(*sizes, n)
		}
		slices.Sort(*sizes)
		return nil
	}
}

func (b *bench) row(cells ...string) {
	_, _ = fmt.Fprintln(b.out, strings.Join(cells, "\t"))
}

// scratch makes a directory with one configuration in it.
func (b *bench) scratch(name, config string) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "fray.hcl"), []byte(config), 0o644)
}

// applied is a scratch directory whose configuration is applied.
func (b *bench) applied(name, config string) (string, error) {
	dir, err := b.scratch(name, config)
	if err != nil {
		return "", err
	}
	if out, err := b.command(dir, "apply", "--auto-approve").CombinedOutput(); err != nil {
		return "", fmt.Errorf("apply: %w\n%s", err, out)
	}
	return dir, nil
}

// command runs the binary under test in a directory.
func (b *bench) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, b.fray, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"))
	return cmd
}
