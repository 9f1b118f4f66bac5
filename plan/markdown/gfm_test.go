package markdown_test

import (
	"bytes"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	gfm "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
)

// page is Markdown as a renderer with GitHub's extensions shows it, HTML within it included:
// what a forge would do to that is seen here.
type page struct {
	code  []string // texts of code spans
	fence []string // texts of code blocks
	plain []string // all other texts: forges look for mentions, references and emoji in these
	tags  map[string]int
	links []string
}

func pageOf(t interface {
	Helper()
	Fatal(args ...any)
}, markdown string) *page {
	t.Helper()
	var out bytes.Buffer
	renderer := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(gfm.WithUnsafe()))
	if err := renderer.Convert([]byte(markdown), &out); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&out)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{tags: map[string]int{}}
	p.walk(root)
	return p
}

func (p *page) walk(n *html.Node) {
	switch n.Type {
	case html.CommentNode:
		p.tags["<!-- -->"]++
	case html.TextNode:
		if strings.TrimSpace(n.Data) != "" {
			p.plain = append(p.plain, n.Data)
		}
	case html.ElementNode:
		p.tags[n.Data]++
		for _, a := range n.Attr {
			switch {
			case n.Data == "a" && a.Key == "href":
				p.links = append(p.links, a.Val)
			case n.Data == "code" && a.Key == "class", n.Data == "details" && a.Key == "open":
			default:
				p.tags[n.Data+" "+a.Key]++
			}
		}
		switch n.Data {
		case "pre":
			p.fence = append(p.fence, textOf(n))
			return
		case "code":
			p.code = append(p.code, textOf(n))
			return
		}
	case html.ErrorNode, html.DocumentNode, html.DoctypeNode, html.RawNode:
	}
	for c := range n.ChildNodes() {
		p.walk(c)
	}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// own are the elements that reviews are made of. What encloses a page is the parser's.
func own() []string {
	return []string{"html", "head", "body", "h2", "p", "blockquote", "ul", "li", "strong", "code", "pre", "details", "summary", "a"}
}

// check reports what of a page is not the review's own.
func (p *page) check(t interface {
	Helper()
	Errorf(format string, args ...any)
}, token string, links ...string) {
	t.Helper()
	for tag := range p.tags {
		if !slices.Contains(own(), tag) {
			t.Errorf("there is an element %s", tag)
		}
	}
	for _, text := range p.plain {
		if strings.Contains(text, token) || strings.ContainsAny(text, "@#<>`$\\|") {
			t.Errorf("text from outside, or a sign that forges act upon, is not in code: %q", text)
		}
	}
	for _, link := range p.links {
		if !slices.Contains(links, link) {
			t.Errorf("there is a link to %q", link)
		}
	}
}
