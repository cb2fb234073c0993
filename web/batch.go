package web

import (
	"net/url"
	"slices"
	"strings"
)

// minBatch is how many similar requests make a batch.
const minBatch = 3

// batchLink leads to the batch page of similar requests.
type batchLink struct {
	Action, Href string
	Count        int
}

// batchKey identifies similar requests: the same action, rules and names of arguments.
func (m *requestModel) batchKey() string {
	if m.Approval == nil || m.Activity == nil || !m.Eligible() || !m.Allows("approve") || len(m.Masked) > 0 {
		return ""
	}
	names := make([]string, len(m.Args))
	for i, a := range m.Args {
		names[i] = a.Name
	}
	slices.Sort(names)
	return strings.Join([]string{m.GraphID, m.Approval.Action, strings.Join(m.Activity.Rules, ","), strings.Join(names, ",")}, "|")
}

// batchesOf returns the batches among requests.
func batchesOf(rows []*requestModel) (links []batchLink) {
	counts := make(map[string]int)
	for _, m := range rows {
		if key := m.batchKey(); key != "" {
			counts[key]++
		}
	}
	for _, m := range rows {
		key := m.batchKey()
		if counts[key] >= minBatch && key != "" {
			links = append(links, batchLink{m.Approval.Action, "/batch?like=" + url.QueryEscape(m.ID), counts[key]})
			delete(counts, key)
		}
	}
	return links
}
