package page

import (
	"net/url"
)

// Periods are the periods to choose from, in days.
var Periods = []int{7, 30, 90}

func requestURL(id string) string { return "/requests/" + url.PathEscape(id) }

func auditURL(id string) string { return "/audit/requests/" + url.PathEscape(id) }

func graphURL(id string) string { return "/graphs/" + url.PathEscape(id) }

// FilterLink is a link to a part of a list.
type FilterLink struct {
	Title, Href string
	Current     bool
}

// WithQuery returns a path with a query of names and values; empty values are left out.
func WithQuery(path string, pairs ...string) string {
	query := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

func RunURL(key string) string { return "/runs/" + url.PathEscape(key) }
