package inproc

import (
	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
)

// progressOptions reports the steps of a graph and the output of its nodes as progress.
func progressOptions(e provider.Execution) []graph.Option {
	if e.Report == nil {
		return nil
	}
	return []graph.Option{
		graph.OnStep(func(s graph.Step) {
			e.Report(provider.Step{Address: s.Address, State: provider.StepState(s.State)})
		}),
		graph.OnOutput(func(o graph.Output) { e.Report(provider.Token{Address: o.Address, Text: o.Text}) }),
	}
}

// reportEvent reports events of an agent as progress: tokens of its model and finished tool calls.
func reportEvent(e provider.Execution, event *agent.Event) {
	switch body := event.Body.(type) {
	case agent.Token:
		e.ReportProgress(provider.Token{Address: event.Path.String(), Agent: event.Agent, Text: body.Text})
	case agent.ToolDone:
		at := append(event.Path[:len(event.Path):len(event.Path)], fermata.Segment{Type: fermata.SegmentTool, ID: body.Call.Name, SubID: body.Call.ID})
		e.ReportProgress(provider.Step{Address: at.String(), State: provider.StepFinished})
	case agent.MessageAdded, agent.ToolOutput, agent.Transferred, agent.Exit, agent.Interrupted, agent.Finished:
	}
}
