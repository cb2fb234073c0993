package page

import (
	"slices"
	"strings"
)

// navGroup is a group of entries of the navigation.
type navGroup struct {
	Title string
	Items []navItem
}

// navItem is an entry of the navigation.
type navItem struct {
	Path, Icon, Title string
	Current           bool
	// ID is set if scripts update the count of the entry.
	ID string
}

// navEntries lists the navigation; an entry is shown if its path has a route.
var navEntries = []struct{ group, path, icon, key string }{
	{"", "/inbox", "inbox", "nav.inbox"},
	{"", "/chat", "chat", "nav.chat"},
	{"", "/runs", "runs", "nav.runs"},
	{"", "/graphs", "graph", "nav.graphs"},
	{"nav.governance", "/policies", "rule", "nav.policies"},
	{"nav.governance", "/routes", "clock", "nav.routes"},
	{"nav.governance", "/grants", "key", "nav.grants"},
	{"nav.governance", "/audit", "log", "nav.audit"},
	{"nav.operations", "/analytics", "bars", "nav.analytics"},
	{"nav.operations", "/deliveries", "send", "nav.deliveries"},
	{"nav.operations", "/admin", "gear", "nav.admin"},
}

// navigation returns the entries for a page. Without a signed-in person there are none.
func (s *Shell) navigation(v *Visit, current string) []navGroup {
	if v.Me.Principal == "" {
		return nil
	}
	var groups []navGroup
	for _, e := range navEntries {
		if !s.paths[e.path] || e.path == "/admin" && !v.isAdmin() {
			continue
		}
		if isChat := e.path == "/chat"; isChat && (!s.Config.Chat || !v.MayChat() && !slices.Contains(v.Me.Roles, "auditor")) || !isChat && v.OnlyChats() {
			continue
		}
		title := ""
		if e.group != "" {
			title = v.T(e.group)
		}
		if len(groups) == 0 || groups[len(groups)-1].Title != title {
			groups = append(groups, navGroup{Title: title})
		}
		last := &groups[len(groups)-1]
		isCurrent := current == e.path || strings.HasPrefix(current, e.path+"/")
		last.Items = append(last.Items, navItem{Path: e.path, Icon: e.icon, Title: v.T(e.key), Current: isCurrent, ID: strings.TrimPrefix(e.path, "/")})
	}
	return groups
}

// HasProfile reports whether the profile page exists.
func (d layout) HasProfile() bool { return d.Shell.paths["/me"] }

// Person returns the name of the signed-in person.
func (d layout) Person() string {
	if d.Me.Name != "" {
		return d.Me.Name
	}
	return d.Me.Principal
}
