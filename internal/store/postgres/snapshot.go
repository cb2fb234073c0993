package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
)

// runSnapshotSQL reads everything that is needed before a decision, in one statement, because each
// statement costs about as much as the data it reads. It has a row for each open interrupt, and one
// row if there is none. It does not read the outcome, which may be large. (The pending condition is
// written so that the planner does not use the index of all pending interrupts.)
const runSnapshotSQL = `
WITH newest AS MATERIALIZED (
    SELECT * FROM runs WHERE handle = ` + keyOfArgs + ` AND account = $1 ORDER BY generation DESC LIMIT 1
)
SELECT clock_timestamp(), ` + refRunColumns + `, ` + runDocumentColumns + `, ` + interruptColumns + `, ` + documentColumns + `
FROM newest AS r
LEFT JOIN papers AS o ON o.key = sha256(sha256(r.account) || sha256($3) || sha256(r.run)) AND o.account = r.account
LEFT JOIN interrupts AS i ON i.run_key = r.key AND i.account = r.account AND NOT i.applied AND i.state IS NOT DISTINCT FROM 'pending'
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account
ORDER BY i.place`

// runDocumentColumns are the documentColumns of the document of the run.
const runDocumentColumns = `o.account, o.kind, o.id, o.run, o.revision, o.body, o.facts, o.next_at, o.created_at, o.updated_at`

// snapshotRow is a row of runSnapshotSQL.
type snapshotRow struct {
	at                   time.Time
	run                  store.Run
	interrupt            store.Interrupt
	runDocument, request store.Document
}

func scanSnapshotRow(rows pgx.CollectableRow) (s snapshotRow, err error) {
	run, asked := slices.Concat([]any{timeScanner{&s.at}}, runDest(&s.run), documentDest(&s.runDocument)), interruptDest(&s.interrupt)
	if rows.RawValues()[len(run)] == nil { // the run has no open interrupt
		clear(asked)
	}
	err = rows.Scan(slices.Concat(run, asked, documentDest(&s.request))...)
	return s, err
}

// RunSnapshot returns a run with its open interrupts and documents, read in one transaction; see
// [store.Inbox].
func (s *Store) RunSnapshot(ctx context.Context, account, stateKey string, own store.DocumentKind) (store.RunSnapshot, error) {
	var t txn
	var rows []snapshotRow
	queryAll(&t, &rows, scanSnapshotRow, runSnapshotSQL, account, stateKey, string(own))
	if err := s.view(ctx, "read a run in", &t); err != nil {
		return store.RunSnapshot{}, err
	}
	if len(rows) == 0 {
		return store.RunSnapshot{}, store.ErrNotFound
	}
	snapshot := store.RunSnapshot{Run: rows[0].run, ReadAt: rows[0].at}
	for _, row := range rows {
		if row.interrupt.ID != "" {
			snapshot.Open = append(snapshot.Open, row.interrupt)
		}
		if row.request.Revision > 0 {
			snapshot.Documents = append(snapshot.Documents, row.request)
		}
	}
	if own := rows[0].runDocument; own.Revision > 0 {
		snapshot.Documents = append(snapshot.Documents, own)
	}
	return snapshot, nil
}
