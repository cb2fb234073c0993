package web

import "github.com/fermata-go/fermata/internal/search"

// operator is an operator of the search with its explanation.
type operator struct{ Example, Help string }

// operators returns the operators of the search, for the help next to the box.
func (s *Site) operators() (all []operator) {
	for _, o := range search.Operators() {
		all = append(all, operator{o.Example, s.texts.text("inbox.op." + o.Name)})
	}
	return all
}

// tool returns the action that a request is about; "" if it is about none.
func (m *requestModel) tool() string {
	switch {
	case m.Approval != nil:
		return m.Approval.Action
	case m.Doubt != nil:
		return m.Doubt.Action
	}
	return ""
}
