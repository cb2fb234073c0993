package main

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

// pgWrites returns the call that writes documents and audit records, for the account in a table of
// the statement. Its arguments start at number first; see withWrites. The deadline of the request
// is correct from the start.
func pgWrites(table string, first int) string {
	text := `write_beside(` + table + `.account`
	for n := range 7 {
		text += fmt.Sprintf(`, $%d`, first+n)
	}
	return text + fmt.Sprintf(`, '{}', $%d)`, first+7)
}

// withWrites appends the arguments of pgWrites to those of a statement.
func withWrites(writes store.Writes, values ...any) []any {
	kinds, ids, runs, bodies := [][]byte{}, [][]byte{}, [][]byte{}, [][]byte{}
	bases, facts, nexts := []int64{}, []*string{}, []pgtype.Timestamptz{}
	for _, p := range writes.Documents {
		kinds, ids, runs = append(kinds, []byte(p.Kind)), append(ids, []byte(p.ID)), append(runs, []byte(p.Run))
		bases, bodies = append(bases, p.BaseRevision), append(bodies, p.Body)
		var known *string
		if p.Index != nil {
			text := string(p.Index)
			known = &text
		}
		facts, nexts = append(facts, known), append(nexts, pgtype.Timestamptz{Time: p.DueAt, Valid: !p.DueAt.IsZero()})
	}
	lines := writes.Audit
	if lines == nil {
		lines = [][]byte{}
	}
	return append(values, kinds, ids, runs, bases, bodies, facts, nexts, lines)
}
