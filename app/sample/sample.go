// Package sample has the graphs of the demo: a text that a person reviews, and an agent that wants
// to drop a table.
package sample

import "github.com/fermata-go/fermata/provider/inproc"

// Graphs returns all sample graphs.
func Graphs() ([]inproc.Graph, error) {
	review, err := contentReview()
	if err != nil {
		return nil, err
	}
	drop, err := dropTable()
	if err != nil {
		return nil, err
	}
	return []inproc.Graph{
		inproc.Flow(review, inproc.FlowConfig[article]{
			Description: "Writes a text and has a person review it, until they approve or reject it.", Content: article.content,
		}),
		inproc.Flow(drop, inproc.FlowConfig[table]{
			Description: "Drops a table (not a real one), if a person approves.", Content: func(t table) string { return t.Receipt }, Explain: explainTable,
		}),
	}, nil
}
