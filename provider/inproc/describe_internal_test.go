package inproc

import (
	"testing"

	"github.com/fermata-go/fermata/provider"
)

// counting is a graph that counts its describe calls.
type counting struct {
	Graph
	times int
}

func (c *counting) describe() (provider.Graph, error) {
	c.times++
	return provider.Graph{Name: "it"}, nil
}

// Deriving a schema takes time, and every start lists the graphs.
func TestGraphs_AreDescribedOnce(t *testing.T) {
	g := new(counting)
	p, err := New(g)
	if err != nil {
		t.Fatal(err)
	}
	p.Graphs()[0].Name = "another"
	if list := p.Graphs(); len(list) != 1 || list[0].Name != "it" || g.times != 1 {
		t.Errorf("described %d times, as %+v", g.times, list)
	}
}
