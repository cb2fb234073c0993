// Package sample holds the graphs that the demo shows: a text that a person reviews, and a table that an agent would like to drop.
package sample

import "github.com/fermata-go/fermata/provider/inproc"

// Graphs are all of them.
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
