// Package sample has the agents of the demo: graphs that ask for each kind of decision, a policy
// for them, and the runs that the demo starts.
package sample

import (
	"fmt"

	"github.com/fermata-go/fermata/examples/dataops/ops"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Graphs returns all sample graphs.
func Graphs() ([]inproc.Graph, error) {
	var set graphSet
	add(&set, contentReview, inproc.FlowConfig[article]{
		Description: "Writes a text and has a person review it, until they approve or reject it.", Content: article.content,
	})
	add(&set, dropTable, inproc.FlowConfig[table]{
		Description: "Drops a table (not a real one), if a person approves.", Content: func(t table) string { return t.Receipt }, Explain: explainTable,
	})
	add(&set, refundOrder, inproc.FlowConfig[refund]{
		Description: "Refunds an order (no real money), if a person approves.", Content: func(r refund) string { return r.Receipt }, Explain: explainRefund,
	})
	add(&set, paySupplier, inproc.FlowConfig[payout]{
		Description: "Pays a supplier through a bank that does not answer, so that a person has to find out what happened.",
		Content:     func(p payout) string { return p.Receipt },
	})
	add(&set, restoreBackup, inproc.FlowConfig[incident]{
		Description: "Asks which backup to restore.", Content: func(i incident) string { return "restored: " + i.Backup },
	})
	add(&set, registerSupplier, inproc.FlowConfig[supplier]{
		Description: "Asks for the details of a new supplier.", Content: func(s supplier) string { return "registered: " + s.Details.LegalName },
	})
	add(&set, deployRelease, inproc.FlowConfig[release]{
		Description: "Checks a release and holds before it deploys it (nowhere).",
		Content:     func(r release) string { return fmt.Sprintf("%s %s is deployed", r.Service, r.Version) },
	})
	add(&set, func() (*graph.Flow[ops.State], error) { return ops.New(ops.NewWarehouse()) }, inproc.FlowConfig[ops.State]{
		Description: "Plans an operation on a data warehouse (not a real one) and holds before it.", Content: func(s ops.State) string { return s.Report },
	})
	return set.graphs, set.err
}

// graphSet collects graphs until one does not compile.
type graphSet struct {
	graphs []inproc.Graph
	err    error
}

func add[S any](set *graphSet, compile func() (*graph.Flow[S], error), config inproc.FlowConfig[S]) {
	if set.err != nil {
		return
	}
	flow, err := compile()
	if err != nil {
		set.err = err
		return
	}
	set.graphs = append(set.graphs, inproc.Flow(flow, config))
}
