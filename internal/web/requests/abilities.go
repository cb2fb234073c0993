package requests

import (
	"github.com/fermata-go/fermata/api"
)

// Ability is a row of the table of capabilities: two names of texts.
type Ability struct{ Name, Value string }

// Abilities returns the table of the capabilities of a provider.
func Abilities(can api.Capabilities) []Ability {
	value := func(can bool) string {
		if can {
			return "graph.yes"
		}
		return "graph.no"
	}
	partial := value(can.PartialResume)
	if can.Parallel && !can.PartialResume {
		partial = "graph.partial.no"
	}
	return []Ability{
		{"graph.parallel", value(can.Parallel)}, {"graph.partial", partial}, {"graph.edit", value(can.Edit)}, {"graph.cancel", value(can.Cancel)},
		{"graph.streaming", value(can.Streaming)}, {"graph.receipts", value(can.Receipts)}, {"graph.once", "graph.once." + can.Once},
	}
}
