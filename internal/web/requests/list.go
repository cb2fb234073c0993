package requests

import (
	"net/url"
	"strings"
)

// List is the list of the inbox that a request was opened from. Its forms lead back to it.
type List struct {
	// Tab is the name of the tab; "" for the first one.
	Tab string
	// Query is the person's search.
	Query string
	// Cursor is the page of the list; "" for the first one.
	Cursor string
}

// ListOf reads a list from the query of a page of the inbox.
func ListOf(query url.Values) List {
	return List{query.Get("tab"), strings.TrimSpace(query.Get("q")), query.Get("cursor")}
}

// listName is the parameter of links and forms that names the list they lead back to.
const listName = "list"

// readList reads the list that a form leads back to; nil if it was not opened from one.
func readList(values url.Values) *List {
	if !values.Has(listName) {
		return nil
	}
	query, err := url.ParseQuery(values.Get(listName))
	if err != nil {
		return nil
	}
	list := ListOf(query)
	return &list
}

// Encode returns the list as the query of a page of the inbox.
func (l List) Encode() string { return l.values().Encode() }

func (l List) values() url.Values {
	q := make(url.Values)
	for name, value := range map[string]string{"tab": l.Tab, "q": l.Query, "cursor": l.Cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Href returns the page of the list, with one more parameter if it has a name.
func (l List) Href(name, value string) string {
	q := l.values()
	if name != "" {
		q.Set(name, value)
	}
	if len(q) == 0 {
		return "/inbox"
	}
	return "/inbox?" + q.Encode()
}
