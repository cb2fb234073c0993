package server

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
)

// Graph is something that can be run.
type Graph struct {
	ID          string          `json:"id"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// Kind is a kind of question.
type Kind struct {
	Name           string          `json:"name"`
	QuestionSchema json.RawMessage `json:"questionSchema"`
	AnswerSchema   json.RawMessage `json:"answerSchema"`
}

func (s *Server) registerGraphs() {
	all := []Role{Agent, Approver, Auditor}
	huma.Register(s.api, operation("list-graphs", http.MethodGet, prefix+"/graphs", "What can be run", all...), func(context.Context, *struct{}) (*pageOutput[Graph], error) {
		out := &pageOutput[Graph]{Body: Page[Graph]{Items: []Graph{}}}
		graphs := s.config.Executor.Graphs()
		for _, id := range slices.Sorted(maps.Keys(graphs)) {
			out.Body.Items = append(out.Body.Items, Graph{ID: id, Description: graphs[id].Description, InputSchema: graphs[id].Input})
		}
		return out, nil
	})
	huma.Register(s.api, operation("list-kinds", http.MethodGet, prefix+"/kinds", "What can be asked", all...), func(context.Context, *struct{}) (*pageOutput[Kind], error) {
		out := &pageOutput[Kind]{Body: Page[Kind]{Items: []Kind{}}}
		for _, kind := range fermata.Kinds() {
			out.Body.Items = append(out.Body.Items, Kind{Name: kind.Name(), QuestionSchema: kind.QuestionSchema(), AnswerSchema: kind.AnswerSchema()})
		}
		return out, nil
	})
}
