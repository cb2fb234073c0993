package server

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

func (s *Server) registerGraphs() {
	all := []Role{Agent, Approver, Auditor}
	huma.Register(s.api, operation("list-graphs", http.MethodGet, api.Prefix+"/graphs", "What can be run", all...), func(context.Context, *struct{}) (*pageOutput[api.Graph], error) {
		out := &pageOutput[api.Graph]{Body: api.Page[api.Graph]{Items: []api.Graph{}}}
		graphs := s.config.Executor.Graphs()
		for _, id := range slices.Sorted(maps.Keys(graphs)) {
			out.Body.Items = append(out.Body.Items, api.Graph{ID: id, Description: graphs[id].Description, InputSchema: graphs[id].Input})
		}
		return out, nil
	})
	huma.Register(s.api, operation("list-kinds", http.MethodGet, api.Prefix+"/kinds", "What can be asked", all...), func(context.Context, *struct{}) (*pageOutput[api.Kind], error) {
		out := &pageOutput[api.Kind]{Body: api.Page[api.Kind]{Items: []api.Kind{}}}
		for _, kind := range fermata.Kinds() {
			out.Body.Items = append(out.Body.Items, api.Kind{Name: kind.Name(), QuestionSchema: kind.QuestionSchema(), AnswerSchema: kind.PersonSchema()})
		}
		return out, nil
	})
}
