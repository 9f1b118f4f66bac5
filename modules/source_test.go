package modules

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSource(t *testing.T) {
	tests := []struct {
		name, text string
		want       Source
		err        string // part of the error; "" for none
	}{
		{"bucket", "gs://acme/modules/pool", Source{"gs://acme/modules", "pool", ""}, ""},
		{"top of a bucket", "gs://acme/pool", Source{"gs://acme", "pool", ""}, ""},
		{"directory", "file:///srv/modules/pool_2.x", Source{"file:///srv/modules", "pool_2.x", ""}, ""},
		{"within the archive", "gs://acme/modules/pool//gpu/large", Source{"gs://acme/modules", "pool", "gpu/large"}, ""},
		{"digits that are no version", "gs://acme/pool-2", Source{"gs://acme", "pool-2", ""}, ""},
		{"a registry of others", "acme/pool/gcp", Source{}, "write gs://BUCKET/PATH/NAME"},
		{"git", "git::https://example.com/pool.git", Source{}, "write gs://BUCKET/PATH/NAME"},
		{"bucket alone", "gs://acme", Source{}, "write gs://BUCKET/PATH/NAME"},
		{"root of the file system", "file:///pool", Source{}, "write gs://BUCKET/PATH/NAME"},
		{"relative", "file://modules/pool", Source{}, "begins with a slash"},
		{"upwards", "file:///srv/../etc/pool", Source{}, "shortest way: file:///etc/pool"},
		{"upwards in a bucket", "gs://acme/../pool", Source{}, "shortest way"},
		{"out of the archive", "gs://acme/pool//../x", Source{}, "directory within the archive"},
		{"absolute in the archive", "gs://acme/pool///etc", Source{}, "directory within the archive"},
		{"nothing in the archive", "gs://acme/pool//", Source{}, "directory within the archive"},
		{"options", "gs://acme/pool?kms_key=x", Source{}, "a character that no source has"},
		{"a file", "gs://acme/pool-1.2.0.tar.zst", Source{}, "leave out the version"},
		{"a version", "gs://acme/pool-1.2.0", Source{}, "leave out the version"},
		{"a name that is an option", "gs://acme/-pool", Source{}, "not made of letters"},
		{"no name", "gs://acme/modules/", Source{}, "not made of letters"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := ParseSource(test.text)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("ParseSource(%q) has the error %v, want one with %q", test.text, err, test.err)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("ParseSource(%q) = %+v, %v, want %+v", test.text, got, err, test.want)
			}
		})
	}
}

func TestReleases(t *testing.T) {
	src := Source{"gs://acme", "pool", ""}
	files := []string{
		"pool-1.10.0.tar.zst", "pool-1.2.0.tar.gz", "pool-1.2.0.tar.zst", "pool-2.0.0-rc.1.tar.gz", "pool-1.9.0.tar.gz",
		"pool-gpu-3.0.0.tar.zst", "pool-3.0.tar.zst", "pool-v3.0.0.tar.zst", "pool-3.0.0.zip", "pool-3.0.0+x.tar.gz", "pool-03.0.0.tar.gz",
		"pool-1.2.3.4.tar.gz", "pool-.tar.gz", "spool-9.0.0.tar.gz", "README.md",
	}
	var got []string
	for _, r := range releasesOf(src, files) {
		got = append(got, r.version.String()+" "+r.file)
	}
	want := []string{
		"1.2.0 pool-1.2.0.tar.zst", "1.9.0 pool-1.9.0.tar.gz", "1.10.0 pool-1.10.0.tar.zst", "2.0.0-rc.1 pool-2.0.0-rc.1.tar.gz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("releases (-want +got):\n%s", diff)
	}
}

func TestNewest(t *testing.T) {
	src := Source{"gs://acme", "pool", ""}
	files := []string{"pool-1.0.0.tar.gz", "pool-1.2.0.tar.gz", "pool-1.10.0.tar.gz", "pool-2.0.0.tar.gz", "pool-2.1.0-rc.1.tar.gz"}
	tests := []struct {
		name, constraint string
		files            []string
		want             string // version, or part of the error
	}{
		{"any", "", files, "2.0.0"},
		{"minor", "~> 1.0", files, "1.10.0"},
		{"patch", "~> 1.2.0", files, "1.2.0"},
		{"exactly", "1.0.0", files, "1.0.0"},
		{"several", ">= 1.0, != 1.10.0, < 2.0", files, "1.2.0"},
		{"not a pre-release by exclusion", "!= 2.0.0", files, "1.10.0"},
		{"a pre-release that is asked for", "2.1.0-rc.1", files, "2.1.0-rc.1"},
		{"pre-releases from one on", ">= 2.1.0-alpha", files, "2.1.0-rc.1"},
		{"none", "~> 3.0", files, `no version of gs://acme/pool fits "~> 3.0"; there is 1.0.0, 1.2.0, 1.10.0, 2.0.0, 2.1.0-rc.1`},
		{"pre-releases only", "", files[4:], `version = "2.1.0-rc.1"`},
		{"nothing", "", nil, "gs://acme has no file pool-VERSION.tar.zst or pool-VERSION.tar.gz"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c, err := parseConstraint(test.constraint)
			if err != nil {
				t.Fatal(err)
			}
			r, err := newest(src, c, releasesOf(src, test.files))
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want one with %q", err, test.want)
				}
			} else if r.version.String() != test.want {
				t.Errorf("newest that fits %q is %s, want %s", test.constraint, r.version, test.want)
			}
		})
	}
	if _, err := parseConstraint("latest"); err == nil || !strings.Contains(err.Error(), "write one such as") {
		t.Errorf(`parseConstraint("latest") has the error %v, want one that shows how`, err)
	}
}
