package sample

import (
	"context"

	"github.com/fermata-go/fermata/graph"
)

// release is the state of a deployment.
type release struct {
	Service  string   `json:"service"`
	Version  string   `json:"version"`
	Checks   []string `json:"checks,omitempty"`
	Deployed bool     `json:"deployed,omitempty"`
}

// deployRelease runs checks, and holds before it deploys.
func deployRelease() (*graph.Flow[release], error) {
	g := graph.New[release]("deploy")
	g.Node("check", func(_ context.Context, r release) (release, error) {
		r.Checks = []string{"812 tests passed", "no migration", "error budget 74 % left"}
		return r, nil
	})
	g.Node("deploy", func(_ context.Context, r release) (release, error) {
		r.Deployed = true
		return r, nil
	})
	g.HoldBefore("deploy")
	g.Edge(graph.Start, "check")
	g.Edge("check", "deploy")
	g.Edge("deploy", graph.End)
	return g.Compile()
}
