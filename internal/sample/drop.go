package sample

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/provider"
)

// table is the state of the graph.
type table struct {
	Name    string `json:"name"`
	Rows    int    `json:"rows,omitempty"`
	Receipt string `json:"receipt,omitempty"`
}

// explainTable replies to clarification requests.
func explainTable(_ context.Context, t table, back provider.Clarification) (string, error) {
	return fmt.Sprintf("You asked %q. All I know: the table %s has %d rows, nothing refers to it, and there is no copy.", back.Text, t.Name, t.Rows), nil
}

// dropTable asks for approval, and drops the table once.
func dropTable() (*graph.Flow[table], error) {
	g := graph.New[table]("drop-table")
	g.Node("drop", func(ctx context.Context, t table) (table, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[table]{
			Name: "drop-table", Args: t, Fixed: true, Summary: fmt.Sprintf("Drop the table %s with %d rows. It cannot be brought back.", t.Name, t.Rows),
			Evidence: []fermata.Evidence{{Title: "Plan", Source: "catalog of the database", Text: fmt.Sprintf("DROP TABLE %s;\n-- %d rows, 0 references from other tables, 0 backups", t.Name, t.Rows)}},
		})
		if err != nil {
			return t, err
		}
		t.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, t table, key string) (string, error) {
			return fmt.Sprintf("the table %s is gone (%s)", t.Name, key), nil
		})
		return t, err
	})
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	return g.Compile()
}
