package status

import (
	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
)

// keyMap is the keys of the full-screen view.
type keyMap struct {
	quit, help, filter, all, next, previous     key.Binding
	open, back, group                           key.Binding
	scroll                                      key.Binding // of up to pageDown, for the short help
	up, down, pageUp, pageDown, toFirst, toLast key.Binding
}

var _ help.KeyMap = keyMap{}

func newKeyMap() keyMap {
	bind := func(shown, what string, keys ...string) key.Binding {
		return key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, what))
	}
	return keyMap{
		quit:     bind("q", "quit", "q"),
		help:     bind("?", "help", "?", "h"),
		filter:   bind("/", "filter rows", "/"),
		all:      bind("Esc", "back, show all rows", "esc"),
		open:     bind("Enter", "open the job or group", "enter"),
		group:    bind("o", "group by the next field", "o"),
		back:     bind("Esc", "back", "backspace"),
		next:     bind("Tab", "next pane", "tab", "right", "l"),
		previous: bind("Shift-Tab", "previous pane", "shift+tab", "left"),
		scroll:   bind("↑↓ PgUp PgDn", "select", "up"),
		up:       bind("↑ k", "row up", "up", "k"),
		down:     bind("↓ j", "row down", "down", "j"),
		pageUp:   bind("PgUp b", "page up", "pgup", "b", "ctrl+b"),
		pageDown: bind("PgDn Space", "page down", "pgdown", "space", "ctrl+f"),
		toFirst:  bind("Home g", "first row", "home", "g"),
		toLast:   bind("End G", "last row", "end", "G"),
	}
}

// ShortHelp is the line below the screen.
func (k keyMap) ShortHelp() []key.Binding {
	return []key.Binding{k.quit, k.scroll, k.open, k.next, k.filter, k.help}
}

// detailHelp is the line below a job.
func (k keyMap) detailHelp() []key.Binding {
	scroll := k.scroll
	scroll.SetHelp("↑↓ PgUp PgDn", "scroll")
	return []key.Binding{k.back, scroll, k.next, k.quit, k.help}
}

// FullHelp is the columns of the help screen.
func (k keyMap) FullHelp() [][]key.Binding {
	return [][]key.Binding{
		{k.up, k.down, k.pageUp, k.pageDown, k.toFirst, k.toLast},
		{k.open, k.group, k.next, k.previous, k.filter, k.all, k.help, k.quit},
	}
}
