package server

import (
	"net/http"
	"slices"
)

// routeTable is a mux that records its routes.
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

// Routes lists the patterns that the server handles, in the form of http.ServeMux. The test of
// roles uses this list, so every new route needs an entry there.
func (s *Server) Routes() []string { return slices.Sorted(slices.Values(s.routes)) }
