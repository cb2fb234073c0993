package server

import (
	"net/http"
	"slices"
)

// routeTable is a mux that knows its routes.
type routeTable struct {
	*http.ServeMux
	patterns []string
}

// HandleFunc adds a route.
func (t *routeTable) HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request)) {
	t.patterns = append(t.patterns, pattern)
	t.ServeMux.HandleFunc(pattern, handler)
}

// Handle adds a route.
func (t *routeTable) Handle(pattern string, handler http.Handler) {
	t.HandleFunc(pattern, handler.ServeHTTP)
}

// Routes lists the patterns of everything that the server answers to, in the form of http.ServeMux. Whoever adds one has to say who may call it: the
// test of roles goes by this list.
func (s *Server) Routes() []string { return slices.Sorted(slices.Values(s.routes)) }
