package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver of store/sqlite

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

// The SQL of one run, on the tables of store/sqlite. ?1 is the account, ?2 the run, where there is
// one.
const (
	rawCreate = `
INSERT INTO runs (account, run, state_key, generation, provider, graph, input, input_digest, status, fence, owner, lease_until, created_at, updated_at)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, 'running', 1, ?8, ?9, ?10, ?10)`

	rawOwned = `account = ?1 AND run = ?2 AND fence = ?3 AND status = 'running'`

	rawSaveFirst = `INSERT INTO checkpoints (account, run, version, updated_at) VALUES (?1, ?2, 1, ?3)`

	rawDrop = `DELETE FROM checkpoints WHERE account = ?1 AND run = ?2 AND version = ?3`

	rawEnd = `
UPDATE runs SET status = ?4, outcome = ?5, rests = rests + 1, attempts = 0, owner = NULL, lease_until = NULL, updated_at = ?6 WHERE ` + rawOwned

	rawAsk = `
INSERT INTO interrupts (account, run, id, place, address, kind, data, answer_schema, shown, action, timeout, created_at, deadline)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`

	rawApply = `UPDATE interrupts SET applied = 1 WHERE account = ?1 AND id = ?2 AND state = 'decided' AND applied = 0`

	rawApplied = `
UPDATE resumes SET rest = (SELECT rests + 1 FROM runs WHERE account = ?1 AND run = ?4) WHERE account = ?1 AND actor = ?2 AND id = ?3 AND rest IS NULL`

	rawEvent = `INSERT INTO events (account, run, number, kind, interrupt, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`

	rawTwoEvents = rawEvent + `, (?1, ?2, ?3 + 1, ?7, x'', ?6)`

	rawAddDocument = `
INSERT INTO papers (account, kind, id, run, revision, body, facts, next_at, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?8)`

	rawAmendDocument = `
UPDATE papers SET revision = revision + 1, body = ?5, facts = ?6, next_at = ?7, updated_at = ?8
WHERE account = ?1 AND kind = ?2 AND id = ?3 AND revision = ?4`

	rawAuditHead = `SELECT seq, hash FROM audit WHERE account = ?1 ORDER BY seq DESC LIMIT 1`

	rawAuditLine = `INSERT INTO audit (account, seq, raw, hash) VALUES (?1, ?2, ?3, ?4)`

	// rawFind also reads what a decision needs: the request, the run metadata, and that this resume
	// id was not used.
	rawFind = `
SELECT r.run, i.id, (SELECT max(number) FROM events AS e WHERE e.account = r.account AND e.run = r.run), p.revision, p.body, d.body
FROM runs AS r INDEXED BY runs_alive CROSS JOIN interrupts AS i INDEXED BY interrupts_unapplied ON i.account = r.account AND i.run = r.run
CROSS JOIN papers AS p ON p.account = i.account AND p.kind = 'request' AND p.id = i.id
CROSS JOIN papers AS d ON d.account = r.account AND d.kind = 'run' AND d.id = r.run
WHERE NOT EXISTS (SELECT 1 FROM papers WHERE account = ?1 AND kind = 'resume' AND id = ?3) AND r.account = ?1 AND r.state_key = ?2 AND r.status IN ('ready', 'running', 'waiting', 'parked') AND i.applied = 0 AND i.state = 'pending'`

	rawReceipt = `
INSERT INTO resumes (account, run, actor, id, body, result, interrupt, created_at) VALUES (?1, ?2, ?3, ?4, ?5, 'accepted', x'', ?6)`

	rawWake = `
UPDATE runs SET status = 'ready', updated_at = ?3,
       ready_no = 1 + coalesce((SELECT max(ready_no) FROM runs INDEXED BY runs_numbers WHERE ready_no IS NOT NULL), 0)
WHERE account = ?1 AND run = ?2 AND status = 'waiting'`

	rawDecide = `
UPDATE interrupts SET state = 'decided', verdict = ?3, final = ?4, answer = ?5, decided_by = ?6, via = ?7, source = 'person', resume = ?8, decided_at = ?9
WHERE account = ?1 AND id = ?2 AND state = 'pending' AND (deadline IS NULL OR deadline > ?9)`

	rawClaim = `
UPDATE runs SET status = 'running', fence = fence + 1, owner = ?3, lease_until = ?4, updated_at = ?5
WHERE account = ?1 AND run = ?2 AND status = 'ready'
RETURNING fence`

	rawLoad = `
SELECT c.version, p.name, p.data
FROM checkpoints AS c JOIN checkpoint_parts AS p ON p.account = c.account AND p.run = c.run
WHERE c.account = ?1 AND c.run = ?2`
)

// rawPut writes that many parts in one statement.
func rawPut(parts int) string {
	rows := make([]string, parts)
	for i := range rows {
		rows[i] = fmt.Sprintf(`(?1, ?2, ?%d, ?%d)`, 2*i+3, 2*i+4)
	}
	return `INSERT INTO checkpoint_parts (account, run, name, data) VALUES ` + strings.Join(rows, `, `) +
		` ON CONFLICT (account, run, name) DO UPDATE SET data = excluded.data`
}

// rawSQLite runs on a file. As in the store there is one writing connection, with the store's
// settings.
type rawSQLite struct {
	writer, readers *sql.DB
	writing         map[string]*sql.Stmt
	reading         map[string]*sql.Stmt
	account         []byte
}

func newRawSQLite(ctx context.Context, path string, s *script) (*rawSQLite, error) {
	made, err := sqlite.Open(path) // creates the tables
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	b := &rawSQLite{account: []byte(benchAccount)}
	if b.writer, err = openSQLite(path, "_txlock", "immediate"); err != nil {
		return nil, err
	}
	b.writer.SetMaxOpenConns(1)
	if b.readers, err = openSQLite(path, "_query_only", "1"); err != nil {
		return nil, err
	}
	b.readers.SetMaxOpenConns(max(4, runtime.NumCPU()))
	b.readers.SetMaxIdleConns(max(4, runtime.NumCPU()))
	texts := []string{
		rawCreate, rawSaveFirst, rawDrop, rawEnd, rawAsk, rawApply, rawApplied, rawEvent, rawTwoEvents,
		rawReceipt, rawWake, rawDecide, rawClaim, rawAddDocument, rawAmendDocument, rawAuditHead, rawAuditLine,
	}
	for _, n := range s.partCounts() {
		texts = append(texts, rawPut(n))
	}
	if b.writing, err = prepareAll(ctx, b.writer, texts); err == nil {
		b.reading, err = prepareAll(ctx, b.readers, []string{rawFind, rawLoad})
	}
	if err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// openSQLite opens a file with the settings of store/sqlite.
func openSQLite(path string, more ...string) (*sql.DB, error) {
	q := url.Values{
		"_busy_timeout": {"5000"}, "_foreign_keys": {"on"}, "_synchronous": {"FULL"}, "mode": {"rw"},
		"_pragma": {"trusted_schema(0)", "journal_size_limit(67108864)"},
	}
	for i := 0; i+1 < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String())
}

func prepareAll(ctx context.Context, db *sql.DB, texts []string) (map[string]*sql.Stmt, error) {
	prepared := make(map[string]*sql.Stmt, len(texts))
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("%w in %s", err, text)
		}
		prepared[text] = stmt
	}
	return prepared, nil
}

// partCounts returns the numbers of parts that are saved at the end of an execution.
func (s *script) partCounts() (counts []int) {
	seen := map[int]bool{0: true}
	for _, steps := range [][]scriptStep{s.start, s.decide} {
		for _, one := range steps {
			rested, ok := one.(endStep)
			if !ok || rested.end.Checkpoint == nil {
				continue
			}
			if n := len(rested.end.Checkpoint.Delta.Put); !seen[n] {
				seen[n] = true
				counts = append(counts, n)
			}
		}
	}
	return counts
}

func (b *rawSQLite) close() error { return errors.Join(b.writer.Close(), b.readers.Close()) }

// rawTx is one transaction of the writer. Each statement must change something.
type rawTx struct {
	ctx context.Context
	tx  *sql.Tx
	b   *rawSQLite
	now int64
}

func (b *rawSQLite) write(ctx context.Context, change func(t rawTx) error) error {
	tx, err := b.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after Commit
	if err := change(rawTx{ctx, tx, b, time.Now().UnixMicro()}); err != nil {
		return err
	}
	return tx.Commit()
}

func (t rawTx) exec(text string, values ...any) error {
	result, err := t.tx.StmtContext(t.ctx, t.b.writing[text]).ExecContext(t.ctx, values...)
	if err != nil {
		return err
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		return errors.Join(err, errNotApplied)
	}
	return nil
}

func (b *rawSQLite) create(ctx context.Context, p *rawRun, n store.NewRun) error {
	run := []byte(p.run)
	return b.write(ctx, func(t rawTx) error {
		err := t.exec(rawCreate, b.account, run, []byte(p.key), []byte(n.Provider), []byte(n.Graph), n.Input, []byte(n.InputDigest),
			[]byte(n.Owner), t.now+n.Lease.Microseconds(), t.now)
		if err != nil {
			return err
		}
		p.events = 1
		if err := t.exec(rawEvent, b.account, run, 1, store.EventCreated, []byte{}, t.now); err != nil {
			return err
		}
		return t.writes(n.Writes)
	})
}

// save writes or deletes the state of an owned run.
func (t rawTx) save(run []byte, state *store.CheckpointSave) error {
	if state.Drop {
		return t.exec(rawDrop, t.b.account, run, state.BaseVersion)
	}
	if err := t.exec(rawSaveFirst, t.b.account, run, t.now); err != nil {
		return err
	}
	values := []any{t.b.account, run}
	for _, put := range state.Delta.Put {
		values = append(values, []byte(put.Name), put.Data)
	}
	return t.exec(rawPut(len(state.Delta.Put)), values...)
}

func (b *rawSQLite) endExecution(ctx context.Context, p *rawRun, end store.ExecutionEnd) error {
	run := []byte(p.run)
	return b.write(ctx, func(t rawTx) error {
		if len(end.Applied) > 0 {
			if err := t.exec(rawApplied, b.account, []byte(benchActor), []byte(p.key), run); err != nil {
				return err
			}
		}
		if err := t.exec(rawEnd, b.account, run, p.fence, end.Status, end.Outcome, t.now); err != nil {
			return err
		}
		if err := t.save(run, end.Checkpoint); err != nil {
			return err
		}
		if err := t.writes(end.Writes); err != nil {
			return err
		}
		if len(end.Open) > 0 { // there is one in these runs
			n := end.Open[0]
			err := t.exec(rawAsk, b.account, run, []byte(p.interrupt), []byte(n.Address), []byte(n.Kind), n.Data, n.AnswerSchema, []byte(n.ShownDigest),
				[]byte(n.ActionDigest), n.Timeout, t.now, t.now+n.Timeout.Microseconds())
			if err != nil {
				return err
			}
			return t.exec(rawTwoEvents, b.account, run, p.events+1, store.EventAsked, []byte(p.interrupt), t.now, end.Status)
		}
		if err := t.exec(rawApply, b.account, []byte(p.interrupt)); err != nil {
			return err
		}
		return t.exec(rawEvent, b.account, run, p.events+1, end.Status, []byte{}, t.now)
	})
}

func (b *rawSQLite) find(ctx context.Context, p *rawRun) error {
	var request, dossier []byte
	err := b.reading[rawFind].QueryRowContext(ctx, b.account, []byte(p.key), []byte(resumeDocument(p.key))).
		Scan(&p.run, &p.interrupt, &p.events, &p.revision, &request, &dossier)
	p.documents = len(request) + len(dossier)
	return err
}

func (b *rawSQLite) decide(ctx context.Context, p *rawRun, d store.Decision) error {
	run, id := []byte(p.run), []byte(p.interrupt)
	answer := d.Answers[0]
	err := b.write(ctx, func(t rawTx) error {
		if err := t.exec(rawReceipt, b.account, run, []byte(d.Actor), []byte(p.key), []byte(d.BodyDigest), t.now); err != nil {
			return err
		}
		if err := t.exec(rawWake, b.account, run, t.now); err != nil {
			return err
		}
		if err := t.writes(d.Writes); err != nil { // before the decision, as the database requires
			return err
		}
		err := t.exec(rawDecide, b.account, id, answer.Verdict, []byte(answer.ApprovedDigest), answer.Data, []byte(d.Actor), []byte(d.Via), []byte(p.key), t.now)
		if err != nil {
			return err
		}
		p.events++
		if err := t.exec(rawEvent, b.account, run, p.events, store.EventDecided, id, t.now); err != nil {
			return err
		}
		return t.tx.StmtContext(ctx, b.writing[rawClaim]).
			QueryRowContext(ctx, b.account, run, []byte(d.Claim.Owner), t.now+d.Claim.Lease.Microseconds(), t.now).Scan(&p.fence)
	})
	if err != nil {
		return err
	}
	return b.load(ctx, p)
}

func (b *rawSQLite) load(ctx context.Context, p *rawRun) error {
	rows, err := b.reading[rawLoad].QueryContext(ctx, b.account, []byte(p.run))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var data []byte
		if err := rows.Scan(&p.version, &name, &data); err != nil {
			return err
		}
		p.bytes += len(data)
	}
	return rows.Err()
}
