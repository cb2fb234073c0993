package inproc

import (
	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
)

// watched has the steps of a graph reported.
func watched(e provider.Execution) graph.Option {
	if e.Report == nil {
		return graph.WithSteps(nil)
	}
	return graph.WithSteps(func(s graph.Step) {
		e.Report(provider.Step{Address: s.Address, State: provider.StepState(s.State)})
	})
}

// tell reports what an agent does: what its model says, and the ends of the calls of its tools.
func tell(e provider.Execution, event *agent.Event) {
	switch body := event.Body.(type) {
	case agent.Token:
		e.Tell(provider.Token{Address: event.Path.String(), Agent: event.Agent, Text: body.Text})
	case agent.ToolDone:
		at := append(event.Path[:len(event.Path):len(event.Path)], fermata.Segment{Type: fermata.SegmentTool, ID: body.Call.Name, SubID: body.Call.ID})
		e.Tell(provider.Step{Address: at.String(), State: provider.StepFinished})
	case agent.Said, agent.ToolOutput, agent.Transferred, agent.Exit, agent.Interrupted, agent.Finished:
	}
}
