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

	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

// The SQL of one run, on the tables of store/sqlite. ?1 is the account, ?2 the run, where there is one.
const (
	bareCreate = `
INSERT INTO runs (account, run, state_key, generation, provider, graph, input, input_digest, status, fence, owner, lease_until, created_at, updated_at)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, 'running', 1, ?8, ?9, ?10, ?10)`

	bareOwned = `account = ?1 AND run = ?2 AND fence = ?3 AND status = 'running'`

	bareSaveFirst = `INSERT INTO checkpoints (account, run, version, updated_at) VALUES (?1, ?2, 1, ?3)`

	bareDrop = `DELETE FROM checkpoints WHERE account = ?1 AND run = ?2 AND version = ?3`

	bareRest = `
UPDATE runs SET status = ?4, outcome = ?5, rests = rests + 1, attempts = 0, owner = NULL, lease_until = NULL, updated_at = ?6 WHERE ` + bareOwned

	bareAsk = `
INSERT INTO interrupts (account, run, id, place, address, kind, data, answer_schema, shown, action, timeout, created_at, deadline)
VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)`

	bareApply = `UPDATE interrupts SET applied = 1 WHERE account = ?1 AND id = ?2 AND state = 'decided' AND applied = 0`

	bareApplied = `
UPDATE resumes SET rest = (SELECT rests + 1 FROM runs WHERE account = ?1 AND run = ?4) WHERE account = ?1 AND actor = ?2 AND id = ?3 AND rest IS NULL`

	bareNote = `INSERT INTO events (account, run, number, kind, interrupt, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)`

	bareNoteTwo = bareNote + `, (?1, ?2, ?3 + 1, ?7, x'', ?6)`

	bareAddPaper = `
INSERT INTO papers (account, kind, id, run, revision, body, facts, next_at, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8, ?8)`

	bareAmendPaper = `
UPDATE papers SET revision = revision + 1, body = ?5, facts = ?6, next_at = ?7, updated_at = ?8
WHERE account = ?1 AND kind = ?2 AND id = ?3 AND revision = ?4`

	bareHead = `SELECT seq, hash FROM audit WHERE account = ?1 ORDER BY seq DESC LIMIT 1`

	bareLine = `INSERT INTO audit (account, seq, raw, hash) VALUES (?1, ?2, ?3, ?4)`

	// bareFind also reads what whoever decides has to know: the request, the dossier, and that this resume id was not counted before.
	bareFind = `
SELECT r.run, i.id, (SELECT max(number) FROM events AS e WHERE e.account = r.account AND e.run = r.run), p.revision, p.body, d.body
FROM runs AS r INDEXED BY runs_alive CROSS JOIN interrupts AS i INDEXED BY interrupts_unapplied ON i.account = r.account AND i.run = r.run
CROSS JOIN papers AS p ON p.account = i.account AND p.kind = 'request' AND p.id = i.id
CROSS JOIN papers AS d ON d.account = r.account AND d.kind = 'run' AND d.id = r.run
WHERE NOT EXISTS (SELECT 1 FROM papers WHERE account = ?1 AND kind = 'resume' AND id = ?3) AND r.account = ?1 AND r.state_key = ?2 AND r.status IN ('ready', 'running', 'waiting', 'parked') AND i.applied = 0 AND i.state = 'pending'`

	bareReceipt = `
INSERT INTO resumes (account, run, actor, id, body, result, interrupt, created_at) VALUES (?1, ?2, ?3, ?4, ?5, 'accepted', x'', ?6)`

	bareWake = `
UPDATE runs SET status = 'ready', updated_at = ?3,
       ready_no = 1 + coalesce((SELECT max(ready_no) FROM runs INDEXED BY runs_numbers WHERE ready_no IS NOT NULL), 0)
WHERE account = ?1 AND run = ?2 AND status = 'waiting'`

	bareDecide = `
UPDATE interrupts SET state = 'decided', verdict = ?3, final = ?4, answer = ?5, decided_by = ?6, via = ?7, source = 'person', resume = ?8, decided_at = ?9
WHERE account = ?1 AND id = ?2 AND state = 'pending' AND (deadline IS NULL OR deadline > ?9)`

	bareClaim = `
UPDATE runs SET status = 'running', fence = fence + 1, owner = ?3, lease_until = ?4, updated_at = ?5
WHERE account = ?1 AND run = ?2 AND status = 'ready'
RETURNING fence`

	bareLoad = `
SELECT c.version, p.name, p.data
FROM checkpoints AS c JOIN checkpoint_parts AS p ON p.account = c.account AND p.run = c.run
WHERE c.account = ?1 AND c.run = ?2`
)

// barePut writes that many parts in one statement.
func barePut(parts int) string {
	rows := make([]string, parts)
	for i := range rows {
		rows[i] = fmt.Sprintf(`(?1, ?2, ?%d, ?%d)`, 2*i+3, 2*i+4)
	}
	return `INSERT INTO checkpoint_parts (account, run, name, data) VALUES ` + strings.Join(rows, `, `) +
		` ON CONFLICT (account, run, name) DO UPDATE SET data = excluded.data`
}

// bareSQLite plays on a file. As in the store there is one connection that writes, and its settings are the store's.
type bareSQLite struct {
	writer, readers *sql.DB
	writing         map[string]*sql.Stmt
	reading         map[string]*sql.Stmt
	account         []byte
}

func newBareSQLite(ctx context.Context, path string, s *script) (*bareSQLite, error) {
	made, err := sqlite.Open(path) // with its tables
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	b := &bareSQLite{account: []byte(benchAccount)}
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
		bareCreate, bareSaveFirst, bareDrop, bareRest, bareAsk, bareApply, bareApplied, bareNote, bareNoteTwo,
		bareReceipt, bareWake, bareDecide, bareClaim, bareAddPaper, bareAmendPaper, bareHead, bareLine,
	}
	for _, n := range s.partCounts() {
		texts = append(texts, barePut(n))
	}
	if b.writing, err = prepareAll(ctx, b.writer, texts); err == nil {
		b.reading, err = prepareAll(ctx, b.readers, []string{bareFind, bareLoad})
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

// partCounts are the numbers of parts that are saved with a rest.
func (s *script) partCounts() (counts []int) {
	seen := map[int]bool{0: true}
	for _, steps := range [][]stage{s.start, s.decide} {
		for _, one := range steps {
			rested, ok := one.(rests)
			if !ok || rested.rest.State == nil {
				continue
			}
			if n := len(rested.rest.State.Delta.Put); !seen[n] {
				seen[n] = true
				counts = append(counts, n)
			}
		}
	}
	return counts
}

func (b *bareSQLite) close() error { return errors.Join(b.writer.Close(), b.readers.Close()) }

// bareTx is one transaction of the writer. Each statement has to change something.
type bareTx struct {
	ctx context.Context
	tx  *sql.Tx
	b   *bareSQLite
	now int64
}

func (b *bareSQLite) write(ctx context.Context, change func(t bareTx) error) error {
	tx, err := b.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := change(bareTx{ctx, tx, b, time.Now().UnixMicro()}); err != nil {
		return err
	}
	return tx.Commit()
}

func (t bareTx) exec(text string, values ...any) error {
	result, err := t.tx.StmtContext(t.ctx, t.b.writing[text]).ExecContext(t.ctx, values...)
	if err != nil {
		return err
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		return errors.Join(err, errRefused)
	}
	return nil
}

func (b *bareSQLite) create(ctx context.Context, p *part, n store.NewRun) error {
	run := []byte(p.run)
	return b.write(ctx, func(t bareTx) error {
		err := t.exec(bareCreate, b.account, run, []byte(p.key), []byte(n.Provider), []byte(n.Graph), n.Input, []byte(n.InputDigest),
			[]byte(n.Owner), t.now+n.Lease.Microseconds(), t.now)
		if err != nil {
			return err
		}
		p.events = 1
		if err := t.exec(bareNote, b.account, run, 1, store.EventCreated, []byte{}, t.now); err != nil {
			return err
		}
		return t.beside(n.Beside)
	})
}

// save writes the state of a run whose owner this is, or drops it.
func (t bareTx) save(run []byte, state *store.Save) error {
	if state.Drop {
		return t.exec(bareDrop, t.b.account, run, state.Base)
	}
	if err := t.exec(bareSaveFirst, t.b.account, run, t.now); err != nil {
		return err
	}
	values := []any{t.b.account, run}
	for _, put := range state.Delta.Put {
		values = append(values, []byte(put.Name), put.Data)
	}
	return t.exec(barePut(len(state.Delta.Put)), values...)
}

func (b *bareSQLite) rest(ctx context.Context, p *part, rest store.Rest) error {
	run := []byte(p.run)
	return b.write(ctx, func(t bareTx) error {
		if len(rest.Applied) > 0 {
			if err := t.exec(bareApplied, b.account, []byte(benchActor), []byte(p.key), run); err != nil {
				return err
			}
		}
		if err := t.exec(bareRest, b.account, run, p.fence, rest.Status, rest.Outcome, t.now); err != nil {
			return err
		}
		if err := t.save(run, rest.State); err != nil {
			return err
		}
		if err := t.beside(rest.Beside); err != nil {
			return err
		}
		if len(rest.Open) > 0 { // there is one in these runs
			n := rest.Open[0]
			err := t.exec(bareAsk, b.account, run, []byte(p.interrupt), []byte(n.Address), []byte(n.Kind), n.Data, n.Schema, []byte(n.Shown),
				[]byte(n.Action), n.Timeout, t.now, t.now+n.Timeout.Microseconds())
			if err != nil {
				return err
			}
			return t.exec(bareNoteTwo, b.account, run, p.events+1, store.EventAsked, []byte(p.interrupt), t.now, rest.Status)
		}
		if err := t.exec(bareApply, b.account, []byte(p.interrupt)); err != nil {
			return err
		}
		return t.exec(bareNote, b.account, run, p.events+1, rest.Status, []byte{}, t.now)
	})
}

func (b *bareSQLite) find(ctx context.Context, p *part) error {
	var request, dossier []byte
	err := b.reading[bareFind].QueryRowContext(ctx, b.account, []byte(p.key), []byte(resumeName(p.key))).
		Scan(&p.run, &p.interrupt, &p.events, &p.revision, &request, &dossier)
	p.paper = len(request) + len(dossier)
	return err
}

func (b *bareSQLite) decide(ctx context.Context, p *part, d store.Decision) error {
	run, id := []byte(p.run), []byte(p.interrupt)
	answer := d.Answers[0]
	err := b.write(ctx, func(t bareTx) error {
		if err := t.exec(bareReceipt, b.account, run, []byte(d.Actor), []byte(p.key), []byte(d.Body), t.now); err != nil {
			return err
		}
		if err := t.exec(bareWake, b.account, run, t.now); err != nil {
			return err
		}
		if err := t.beside(d.Beside); err != nil { // before the decision: the database wants to see it
			return err
		}
		err := t.exec(bareDecide, b.account, id, answer.Verdict, []byte(answer.Final), answer.Data, []byte(d.Actor), []byte(d.Via), []byte(p.key), t.now)
		if err != nil {
			return err
		}
		p.events++
		if err := t.exec(bareNote, b.account, run, p.events, store.EventDecided, id, t.now); err != nil {
			return err
		}
		return t.tx.StmtContext(ctx, b.writing[bareClaim]).
			QueryRowContext(ctx, b.account, run, []byte(d.Claim.Owner), t.now+d.Claim.Lease.Microseconds(), t.now).Scan(&p.fence)
	})
	if err != nil {
		return err
	}
	return b.load(ctx, p)
}

func (b *bareSQLite) load(ctx context.Context, p *part) error {
	rows, err := b.reading[bareLoad].QueryContext(ctx, b.account, []byte(p.run))
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
