// Command stubs writes the Go code of .proto files, for go generate. It needs
// no protoc: the files are compiled here, and protoc's plugins run by go run.
//
// Files are named by their paths within the module, which is also the name that
// they get in the process's registry; run it in the module's root.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	// What our files may import.
	_ "cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/bufbuild/protocompile"
	_ "google.golang.org/genproto/googleapis/type/interval"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// plugins are go run's arguments: this module's version of protobuf, as the
// generated code needs it, and a fixed one of what is no part of any library.
func plugins() []string {
	return []string{
		"google.golang.org/protobuf/cmd/protoc-gen-go",
		"google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
	}
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "stubs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, files []string, stderr io.Writer) error {
	request, err := compile(ctx, files)
	if err != nil {
		return err
	}
	for _, plugin := range plugins() {
		response, err := ask(ctx, plugin, request, stderr)
		if err != nil {
			return fmt.Errorf("run %s: %w", plugin, err)
		}
		for _, f := range response.GetFile() {
			if err := write(f.GetName(), f.GetContent()); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile makes a plugin's request: the files, after all that they import.
func compile(ctx context.Context, files []string) (*pluginpb.CodeGeneratorRequest, error) {
	imports := protocompile.ResolverFunc(func(path string) (protocompile.SearchResult, error) {
		found, err := protoregistry.GlobalFiles.FindFileByPath(path)
		return protocompile.SearchResult{Desc: found}, err
	})
	compiler := protocompile.Compiler{
		Resolver:       protocompile.CompositeResolver{imports, &protocompile.SourceResolver{}},
		SourceInfoMode: protocompile.SourceInfoStandard, // the comments
	}
	compiled, err := compiler.Compile(ctx, files...)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: files, Parameter: new("paths=source_relative")}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		request.ProtoFile = append(request.ProtoFile, describe(f))
	}
	for _, f := range compiled {
		add(f)
	}
	return request, nil
}

// describe keeps the comments, which are part of what was compiled here.
func describe(f protoreflect.FileDescriptor) *descriptorpb.FileDescriptorProto {
	if source, ok := f.(interface {
		FileDescriptorProto() *descriptorpb.FileDescriptorProto
	}); ok {
		return source.FileDescriptorProto()
	}
	return protodesc.ToFileDescriptorProto(f)
}

// ask runs one plugin, which reads a request and writes what it makes of it.
func ask(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest, stderr io.Writer) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	command := exec.CommandContext(ctx, "go", "run", plugin)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(in), &out, stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out.Bytes(), response); err != nil {
		return nil, fmt.Errorf("read its answer: %w", err)
	}
	if response.Error != nil {
		return nil, fmt.Errorf("it reports: %s", response.GetError())
	}
	return response, nil
}

func write(name, content string) error {
	temp := name + ".new"
	if err := os.WriteFile(temp, []byte(content), 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.FromSlash(name))
}
