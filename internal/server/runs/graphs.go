package runs

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/provider"
)

type graphInput struct {
	GraphID string `path:"graphId" maxLength:"512"`
}

type graphOutput struct{ Body api.Graph }

func (h *Handlers) graphOf(id string, g provider.Graph) api.Graph {
	return api.Graph{ID: id, Description: g.Description, InputSchema: g.Input, Drawing: g.Drawing, Capabilities: capabilitiesOf(h.Executor.Capabilities(id))}
}

func capabilitiesOf(can provider.Capabilities) api.Capabilities {
	return api.Capabilities{
		Parallel: can.Parallel, PartialResume: can.PartialResume, Edit: can.Edit, Cancel: can.Cancel, Streaming: can.Streaming, Receipts: can.Receipts,
		Once: string(cmp.Or(can.Once, provider.OnceNone)),
	}
}

func (h *Handlers) getGraph(_ context.Context, in *graphInput) (*graphOutput, error) {
	g, err := h.Executor.Graph(in.GraphID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &graphOutput{h.graphOf(in.GraphID, g)}, nil
}

func (h *Handlers) getRunGraph(ctx context.Context, in *keyInput) (*graphOutput, error) {
	me := endpoint.Principal(ctx)
	id, g, err := h.Executor.RunGraph(ctx, me.Account, in.StateKey, func(request string) (bool, error) {
		_, visible, err := h.Visibility.MaySeeID(ctx, me, request)
		return visible, err
	})
	if err != nil {
		return nil, problems.Of(err)
	}
	return &graphOutput{h.graphOf(id, g)}, nil
}

func (h *Handlers) registerGraphs(to huma.API) {
	all := []authn.Role{authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor}
	huma.Register(to, endpoint.New("list-graphs", http.MethodGet, api.Prefix+"/graphs", "List the graphs and agents", all...), func(context.Context, *struct{}) (*endpoint.Page[api.Graph], error) {
		out := &endpoint.Page[api.Graph]{Body: api.Page[api.Graph]{Items: []api.Graph{}}}
		graphs := h.Executor.Graphs()
		for _, id := range slices.Sorted(maps.Keys(graphs)) {
			one := h.graphOf(id, graphs[id])
			one.Drawing = nil // the list has no drawings
			out.Body.Items = append(out.Body.Items, one)
		}
		return out, nil
	})
	huma.Register(to, endpoint.New("get-graph", http.MethodGet, api.Prefix+"/graphs/{graphId}", "Get a graph with its drawing", all...), h.getGraph)
	huma.Register(to, endpoint.New("get-run-graph", http.MethodGet, api.Prefix+"/runs/{stateKey}/graph", "Get the graph of a run, with its waiting nodes marked", all...), h.getRunGraph)
	huma.Register(to, endpoint.New("list-kinds", http.MethodGet, api.Prefix+"/kinds", "List the interrupt kinds", all...), func(context.Context, *struct{}) (*endpoint.Page[api.Kind], error) {
		out := &endpoint.Page[api.Kind]{Body: api.Page[api.Kind]{Items: []api.Kind{}}}
		for _, kind := range fermata.Kinds() {
			out.Body.Items = append(out.Body.Items, api.Kind{Name: kind.Name(), QuestionSchema: kind.QuestionSchema(), AnswerSchema: kind.HumanAnswerSchema()})
		}
		return out, nil
	})
}
