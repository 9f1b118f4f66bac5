package decode

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/as"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

func notification(e *Decoder, decl *configs.Declaration) schema.Notification {
	b := given(e, nil, decl.Block)
	n := schema.Notification{
		Addr:         e.Global(decl.Addr),
		On:           eval.Get(e, nil, b.Attr("on"), asNoticeKinds, nil),
		PendingAfter: eval.Get(e, nil, b.Attr("pending_after"), as.PositiveDuration, schema.DefaultPendingAfter),
		BudgetAt:     eval.Get(e, nil, b.Attr("budget_at"), asPart, schema.DefaultBudgetAt),
		Namespaces:   namespacesNamed(e, b.Attr("namespaces")),
	}
	if child := b.Child("slack"); child != nil {
		n.Slack = &schema.SlackReceiver{URL: receiverURL(e, child.Attr("url"))}
	}
	if child := b.Child("webhook"); child != nil {
		n.Webhook = &schema.WebhookReceiver{URL: receiverURL(e, child.Attr("url"))}
		if x := child.Attr("secret"); x != nil {
			n.Webhook.Secret = secretText(e, x)
		}
	}
	if child := b.Child("command"); child != nil {
		n.Command = &schema.CommandReceiver{Command: commandWords(e, child.Attr("command"))}
	}
	if len(n.Receivers()) == 0 {
		e.ErrorAt(decl.Block.Range(), "Missing block", "A notification needs a receiver: add a slack, webhook or command block.")
	}
	return n
}

// asNoticeKinds converts a list of kinds of notices; it sorts them.
func asNoticeKinds(v cty.Value) ([]schema.NoticeKind, error) {
	names, err := as.StringList(v)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("the list is empty; name what is to be reported, such as [\"drift\", \"job_failed\"]")
	}
	one := as.OneOf(schema.NoticeKinds()...)
	kinds := make([]schema.NoticeKind, 0, len(names))
	for _, name := range names {
		kind, err := one(cty.StringVal(name))
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds), nil
}

// asPart converts a number above 0 and up to 1.
func asPart(v cty.Value) (float64, error) {
	n, err := as.Float(v)
	if err != nil {
		return 0, fmt.Errorf("want a number above 0 and up to 1, such as 0.9, this is %s", diagnose.Friendly(v))
	}
	f, _ := n.Float64()
	if f <= 0 || f > 1 {
		return 0, fmt.Errorf("want a number above 0 and up to 1, such as 0.9, this is %s", n.Text('g', 10))
	}
	return f, nil
}

// namespacesNamed are the scoped names of declared namespaces, sorted.
func namespacesNamed(e *Decoder, x *configs.Expression) []string {
	names := eval.Get(e, nil, x, as.StringList, nil)
	var scoped []string
	for _, name := range names {
		addr := schema.Address{Kind: schema.KindNamespace, Name: name}
		if e.Decls.Addressed[addr] == nil {
			e.ErrorAt(x.Expr.Range(), "Invalid value for namespaces", e.Decls.Dangling(addr))
			continue
		}
		scoped = append(scoped, e.Global(addr).Scoped())
	}
	slices.Sort(scoped)
	return slices.Compact(scoped)
}

// secretText decodes a text that is sensitive, whether or not it comes of a sensitive value.
func secretText(e *Decoder, x *configs.Expression) schema.Text {
	if x == nil {
		return schema.Text{}
	}
	out := e.Eval(x, nil)
	if !out.OK || !e.Keepable(x, out) {
		return schema.Text{}
	}
	text, err := toText(out.Value, nil)
	if err == nil && text.IsUnknown() {
		e.NotKnown(x, out.Context, "A receiver must be known at plan time.")
		return schema.Text{}
	}
	value := ""
	if err == nil {
		value, err = text.Reveal(nil)
	}
	if err == nil && value == "" {
		err = fmt.Errorf("it is empty")
	}
	if err != nil {
		e.WrongValue(x, out, err)
		return schema.Text{}
	}
	return schema.Secret(value)
}

// receiverURL decodes the address of a receiver. Errors do not show it.
func receiverURL(e *Decoder, x *configs.Expression) schema.Text {
	text := secretText(e, x)
	value, err := text.Reveal(nil)
	if err != nil || value == "" {
		return text
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		e.ErrorAt(x.Expr.Range(), "Invalid value for url", "Write an address such as https://hooks.example.com/services/…, without a user name.")
		return schema.Text{}
	}
	return text
}

// commandWords decodes the command of a receiver, which is known at plan time.
func commandWords(e *Decoder, x *configs.Expression) []schema.Text {
	words := e.texts(nil, x)
	switch {
	case x == nil:
	case slices.ContainsFunc(words, schema.Text.IsUnknown):
		e.ErrorAt(x.Expr.Range(), "Invalid value for command", "A receiver must be known at plan time, and part of the command is known only after apply.")
	case len(words) == 0 || words[0].String() == "":
		e.ErrorAt(x.Expr.Range(), "Invalid value for command", "Write program and arguments, such as [\"notify-send\", \"fray\"].")
	}
	return words
}
