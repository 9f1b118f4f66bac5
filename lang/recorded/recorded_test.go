package recorded_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/load"
	langrecorded "github.com/fray-ml/fray/lang/recorded"
	"github.com/fray-ml/fray/schema"
)

// everything reads files in every way that there is.
const everything = `
variable "size" { type = number }
variable "name" { type = string }
variable "zone" { type = string }

module "near" {
  source = "./near"
  word   = var.name
}

module "far" {
  source  = "file:///registry/far"
  version = "1.2.0"
}

job "a" {
  command = ["sleep", "1"]
}

job "b" {
  command = ["echo", file("text.txt"), templatefile("hello.tpl", { name = var.name }), join(",", fileset("parts", "*.txt"))]
  environment {
    project = "app"
    env = {
      MISSING = fileexists("missing.txt")
      ELSE    = try(file("missing.txt"), "none")
      SUM     = filesha256("text.txt")
      HERE    = path.root
      CWD     = path.cwd
      HOME    = pathexpand("~/x")
      SIZE    = var.size
      ZONE    = var.zone
      OTHER   = job.a.address
      AT      = timestamp()
      ID      = uuid()
      PLANNED = plantimestamp()
    }
  }
}

output "near" { value = module.near.word }
output "far" { value = module.far.word }
`

const echoing = `
variable "word" {
  type    = string
  default = "none"
}
output "word" { value = "${var.word} ${file("${path.module}/said.txt")}" }
`

// registry has one module, in a directory.
type registry struct{ dir string }

func (r registry) Installed(_, source, version string) (load.InstalledModule, error) {
	if source != "file:///registry/far" || version != "1.2.0" {
		return load.InstalledModule{}, errors.New("there is no such module")
	}
	return load.InstalledModule{Archive: r.dir, Dir: r.dir}, nil
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// record evaluates everything in a directory and returns the recording of it,
// and what came of it.
func record(t *testing.T, dir string) (*langrecorded.Configuration, *schema.Config) {
	t.Helper()
	write(t, dir, map[string]string{
		"conf/main.hcl": everything, "conf/x.auto.frayvars": "size = 3\n", "zone.frayvars": "zone = \"z\"\n",
		"conf/text.txt": "said", "conf/hello.tpl": "hello ${name}", "conf/parts/1.txt": "", "conf/parts/2.txt": "",
		"conf/app/main.py": "", "conf/near/near.hcl": echoing, "conf/near/said.txt": "near by", "far/far.hcl": echoing, "far/said.txt": "far away",
	})
	r := &langrecorded.Recorder{Modules: registry{filepath.Join(dir, "far")}}
	conf := filepath.Join(dir, "conf")
	source, diags := r.Parser().Parse([]string{conf})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	opts := eval.Options{
		Environ: []string{"FRAY_VAR_name=ann"},
		Given:   []eval.Given{{Kind: eval.GivenVarFile, Text: filepath.Join(dir, "zone.frayvars")}},
	}
	opts.Moment = funcs.Moment{Planned: time.Unix(1_700_000_000, 0).UTC(), Applied: time.Unix(1_700_000_009, 0).UTC(), Seed: "s"}
	config, diags := source.Evaluate(opts)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c := r.Configuration()
	c.Paths, c.Given, c.Environ, c.Moment = []string{conf}, opts.Given, opts.Environ, opts.Moment
	return c, config
}

// TestEvaluatedAgain: a recording is evaluated as its files were, where there
// are none of them.
func TestEvaluatedAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	c, want := record(t, dir)
	if len(want.Outputs) != 2 || len(want.Desired.Jobs) != 2 {
		t.Fatalf("the configuration came to %+v", want)
	}
	data, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	read, err := langrecorded.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	source, err := read.Parse()
	if err != nil {
		t.Fatal(err)
	}
	got, diags := source.Evaluate(read.Options())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(schema.Address{}, schema.Text{})); diff != "" {
		t.Errorf("evaluated again (-want +got):\n%s", diff)
	}
}

// TestEqualArchives: the same configuration always gives the same archive, and
// any other value another one.
func TestEqualArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	archive := func(change func(*langrecorded.Configuration)) []byte {
		c, _ := record(t, dir)
		change(c)
		data, err := c.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := archive(func(*langrecorded.Configuration) {})
	if !bytes.Equal(first, archive(func(*langrecorded.Configuration) {})) {
		t.Error("the same configuration gave two archives")
	}
	if bytes.Equal(first, archive(func(c *langrecorded.Configuration) { c.Environ = []string{"FRAY_VAR_name=bob"} })) {
		t.Error("another value gave the same archive")
	}
}

// TestTooLarge: more than is recorded is rejected, with its size.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"main.hcl": `job "a" { command = ["echo", filesha256("big.bin")] }`, "big.bin": strings.Repeat("x", langrecorded.MaxSize),
	})
	r := &langrecorded.Recorder{}
	source, diags := r.Parser().Parse([]string{dir})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if _, diags := source.Evaluate(eval.Options{}); diags.HasErrors() {
		t.Fatal(diags)
	}
	_, err := r.Configuration().Encode()
	var large langrecorded.TooLarge
	if !errors.As(err, &large) || !strings.Contains(err.Error(), "17 MiB, and at most 16 MiB") {
		t.Errorf("got %v, want that it is too large", err)
	}
}

// TestDamaged: what is no recording is rejected.
func TestDamaged(t *testing.T) {
	t.Parallel()
	c, _ := record(t, t.TempDir())
	data, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"empty": nil, "cut off": data[:len(data)/2], "text": []byte("no archive")} {
		if _, err := langrecorded.Decode(bad); err == nil {
			t.Errorf("%s: it was opened", name)
		}
	}
}

// TestUnheard: what a recording does not know is not read from the disk.
func TestUnheard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, _ := record(t, dir)
	c.Paths = []string{filepath.Join(dir, "conf", "near"), filepath.Join(dir, "far"), dir}
	if _, err := c.Parse(); err == nil || !strings.Contains(err.Error(), "not in the recording") {
		t.Errorf("got %v, want that a directory is not in the recording", err)
	}
}

// small are files of 400 bytes, as many as are asked for.
type small struct{ files.Disk }

func (small) Read(string, files.Reading) ([]byte, error) { return make([]byte, 400), nil }

// TestManySmallFiles: what is recorded is opened again, however much an archive
// needs around it; more files than that allows are refused, and said so.
func TestManySmallFiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		files int
		want  string
	}{{40_000, ""}, {100_001, "it reads 100001 files, and at most 100000 are recorded"}} {
		r := &langrecorded.Recorder{Files: small{}}
		for i := range test.files {
			if _, err := r.Read(fmt.Sprintf("/%s/%d", strings.Repeat("long/", 30), i), files.ReadData); err != nil {
				t.Fatal(err)
			}
		}
		data, err := r.Configuration().Encode()
		if err == nil {
			var read *langrecorded.Configuration
			if read, err = langrecorded.Decode(data); err == nil {
				if again, err := read.Encode(); err != nil || !bytes.Equal(again, data) {
					t.Errorf("%d files: something else was opened than was recorded (%v)", test.files, err)
				}
			}
		}
		if got := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%d files: %v, want %q", test.files, err, test.want)
		}
	}
}
