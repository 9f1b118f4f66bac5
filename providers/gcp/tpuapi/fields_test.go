package tpuapi_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// The generated code has the names and numbers of the published API, which
// python/tests/test_tpu_api.py compares with the descriptors of Google's own client: no more
// and no fewer than testdata/fields.txt lists.
func TestPublishedFields(t *testing.T) {
	text, err := os.ReadFile("testdata/fields.txt")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	if len(want) < 250 {
		t.Fatalf("the listing has %d lines only", len(want))
	}
	file := tpuapi.File_providers_gcp_tpuapi_tpu_proto
	if file.Package() != "google.cloud.tpu.v2alpha1" {
		t.Errorf("the package is %s", file.Package())
	}
	got := listing(file)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rpcs, fields and enums (-published +generated):\n%s", diff)
	}
}

func listing(file protoreflect.FileDescriptor) []string {
	l := &lister{within: string(file.Package()) + "."}
	for i := range file.Services().Len() {
		methods := file.Services().Get(i).Methods()
		for j := range methods.Len() {
			m := methods.Get(j)
			l.add("rpc %s %s -> %s", m.Name(), l.short(m.Input()), l.short(m.Output()))
		}
	}
	l.enums(file.Enums())
	l.messages(file.Messages())
	return l.lines
}

type lister struct {
	within string // the package's name and a dot
	lines  []string
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// short is a name as it is written in the package.
func (l *lister) short(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), l.within)
}

func (l *lister) enums(enums protoreflect.EnumDescriptors) {
	for i := range enums.Len() {
		values := enums.Get(i).Values()
		for j := range values.Len() {
			l.add("enum %s %s %d", l.short(enums.Get(i)), values.Get(j).Name(), values.Get(j).Number())
		}
	}
}

func (l *lister) messages(messages protoreflect.MessageDescriptors) {
	for i := range messages.Len() {
		m := messages.Get(i)
		if m.IsMapEntry() {
			continue
		}
		l.enums(m.Enums())
		l.messages(m.Messages())
		for j := range m.Fields().Len() {
			l.field(m, m.Fields().Get(j))
		}
	}
}

func (l *lister) field(m protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) {
	line := fmt.Sprintf("field %s %s %d ", l.short(m), f.Name(), f.Number())
	switch {
	case f.IsMap():
		line += fmt.Sprintf("map<%s, %s>", l.kind(m, f.MapKey()), l.kind(m, f.MapValue()))
	case f.IsList():
		line += "repeated " + l.kind(m, f)
	case f.HasOptionalKeyword():
		line += "optional " + l.kind(m, f)
	default:
		line += l.kind(m, f)
	}
	if one := f.ContainingOneof(); one != nil && !one.IsSynthetic() {
		line += " oneof:" + string(one.Name())
	}
	l.add("%s", line)
}

// kind is a field's type as it is written where the field stands: the last
// word of what stands inside of the message, or beside it.
func (l *lister) kind(m protoreflect.MessageDescriptor, f protoreflect.FieldDescriptor) string {
	var of protoreflect.Descriptor = f.Message()
	if f.Kind() == protoreflect.EnumKind {
		of = f.Enum()
	}
	if of == nil {
		return f.Kind().String()
	}
	if of.ParentFile() == m.ParentFile() {
		return string(of.Name())
	}
	return string(of.FullName())
}
