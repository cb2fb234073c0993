package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/store"
)

// standingSQL reads all that somebody looks at before they decide, in one statement: each that there is costs the server about as much as what it
// reads. It has a row for each open interrupt, and one without if there is none. What is not asked for is not read: an outcome may be large.
// (That an interrupt is pending is said in words that lead to no index: the server would rather look through all that are.)
const standingSQL = `
WITH newest AS MATERIALIZED (
    SELECT * FROM runs WHERE handle = ` + thisKey + ` AND account = $1 ORDER BY generation DESC LIMIT 1
)
SELECT clock_timestamp(), ` + refRunColumns + `, ` + ownColumns + `, ` + interruptColumns + `, ` + paperColumns + `
FROM newest AS r
LEFT JOIN papers AS o ON o.key = sha256(sha256(r.account) || sha256($3) || sha256(r.run)) AND o.account = r.account
LEFT JOIN interrupts AS i ON i.run_key = r.key AND i.account = r.account AND NOT i.applied AND i.state IS NOT DISTINCT FROM 'pending'
LEFT JOIN papers AS p ON p.key = ` + requestKey + ` AND p.account = i.account
ORDER BY i.place`

// ownColumns are the paperColumns of the run's own paper.
const ownColumns = `o.account, o.kind, o.id, o.run, o.revision, o.body, o.facts, o.next_at, o.created_at, o.updated_at`

// standing is a row of standingSQL.
type standing struct {
	at           time.Time
	run          store.Run
	asked        store.Interrupt
	own, request store.Paper
}

func scanStanding(rows pgx.CollectableRow) (s standing, err error) {
	run, asked := slices.Concat([]any{moment{&s.at}}, runDest(&s.run), paperDest(&s.own)), interruptDest(&s.asked)
	if rows.RawValues()[len(run)] == nil { // the run asks nothing
		clear(asked)
	}
	err = rows.Scan(slices.Concat(run, asked, paperDest(&s.request))...)
	return s, err
}

// Standing returns where a run stands, all of it as it was at one moment; see [store.Inbox].
func (s *Store) Standing(ctx context.Context, account, stateKey string, own store.PaperKind) (store.Standing, error) {
	var t turn
	var rows []standing
	list(&t, &rows, scanStanding, standingSQL, account, stateKey, string(own))
	if err := s.look(ctx, "look at a run in", &t); err != nil {
		return store.Standing{}, err
	}
	if len(rows) == 0 {
		return store.Standing{}, store.ErrNotFound
	}
	stands := store.Standing{Run: rows[0].run, At: rows[0].at}
	for _, row := range rows {
		if row.asked.ID != "" {
			stands.Open = append(stands.Open, row.asked)
		}
		if row.request.Revision > 0 {
			stands.Papers = append(stands.Papers, row.request)
		}
	}
	if own := rows[0].own; own.Revision > 0 {
		stands.Papers = append(stands.Papers, own)
	}
	return stands, nil
}
