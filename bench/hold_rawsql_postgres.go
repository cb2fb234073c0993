package main

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/store/postgres"
)

// The SQL of one run, on the tables of store/postgres. Each transaction is one statement, except
// for a decision, which is followed by the claim: the database must see the run as ready in
// between. All are sent in one round trip. $1 is the key of the run, where there is one; the
// arguments of pgWrites come last.
var (
	pgCreate = `
WITH created AS (
    INSERT INTO runs (account, run, state_key, generation, provider, graph, input, input_digest, status, fence, owner, lease_until, events, created_at, updated_at)
    VALUES ($1, $2, $3, 1, $4, $5, $6, $7, 'running', 1, $8, now() + $9 * interval '1 microsecond', 1, now(), now())
    RETURNING account, run
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, 1, 'created', '', now() FROM created
)
SELECT ` + pgWrites("created", 10) + ` FROM created`

	// $6 and $7 are the names and the data of the parts of the state. It is the first state: a
	// second one would be rejected.
	pgEndWaiting = `
WITH r AS (` + pgEnded + ` WHERE ` + pgOwned + ` RETURNING account, run, events), c AS (
    INSERT INTO checkpoints (account, run, version, updated_at) SELECT account, run, 1, now() FROM r RETURNING id
), put AS (
    INSERT INTO checkpoint_parts (checkpoint, name, data)
    SELECT c.id, p.name, p.data FROM c CROSS JOIN unnest($6::bytea[], $7::bytea[]) AS p (name, data)
), asked AS (
    INSERT INTO interrupts (account, run, id, place, address, kind, data, answer_schema, shown, action, timeout, created_at, deadline)
    SELECT account, run, $8, 1, $9, $10, $11, $12, $13, $14, $15, now(), now() + $16 * interval '1 microsecond' FROM r
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at)
    SELECT account, run, events - 2 + n, kind, interrupt, now() FROM r CROSS JOIN (VALUES (1, 'asked', $8), (2, $3, '')) AS e (n, kind, interrupt)
)
SELECT ` + pgWrites("r", 17) + ` FROM r`

	// The run is released only if its deleted state is the one that was loaded. $6 is its id and $7
	// its version.
	pgEndDone = `
WITH owner AS (SELECT key FROM runs WHERE ` + pgOwned + ` FOR NO KEY UPDATE), c AS (
    DELETE FROM checkpoints AS c USING owner WHERE c.id = $6 AND c.version = $7 RETURNING c.id
), r AS (` + pgEnded + ` FROM c WHERE ` + pgOwned + ` RETURNING account, run, events, rests), applied AS (
    UPDATE interrupts AS i SET applied = true FROM r WHERE i.key = $8 AND i.state = 'decided' AND NOT i.applied
), told AS (
    UPDATE resumes AS p SET rest = r.rests FROM r WHERE p.key = $9 AND p.rest IS NULL
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, events, $3, '', now() FROM r
)
SELECT ` + pgWrites("r", 10) + ` FROM r`

	pgDecide = `
WITH receipt AS (
    INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at) VALUES ($2, $3, $4, $5, $6, 'accepted', '', now())
    ON CONFLICT (key) DO NOTHING RETURNING run
), r AS (
    UPDATE runs SET status = 'ready', ready_no = nextval('ready_numbers'), events = events + 1, updated_at = now()
    FROM receipt WHERE key = $1 AND status = 'waiting'
    RETURNING runs.account, runs.run, events, set_config('fermata.run', encode(key, 'hex'), true) AS hand
), decided AS (
    UPDATE interrupts AS i SET state = 'decided', verdict = $8, final = $9, answer = $10, decided_by = $3, via = $11, source = 'person', resume = $4, decided_at = now()
    FROM r WHERE i.key = $7 AND i.state = 'pending' AND (i.deadline IS NULL OR i.deadline > now())
    RETURNING i.id
), noted AS (
    INSERT INTO events (account, run, number, kind, interrupt, at) SELECT r.account, r.run, r.events, 'decided', d.id, now() FROM r CROSS JOIN decided AS d
)
SELECT ` + pgWrites("r", 12) + ` FROM r CROSS JOIN decided WHERE r.hand <> ''`
)

const (
	pgOwned = `key = $1 AND fence = $2 AND status = 'running'`

	// $5 is the number of interrupts.
	pgEnded = `
    UPDATE runs SET status = $3, outcome = $4, rests = rests + 1, attempts = 0, owner = NULL, lease_until = NULL, updated_at = now(),
           places = places + $5, events = events + $5 + 1`

	// pgFind also reads what a decision needs: the request, the run metadata, and that this resume
	// id was not used.
	pgFind = `
SELECT r.run, i.id, p.revision, p.body, d.body FROM runs AS r JOIN interrupts AS i ON i.run_key = r.key
JOIN papers AS p ON p.key = sha256(sha256(i.account) || sha256('request'::bytea) || sha256(i.id))
JOIN papers AS d ON d.key = sha256(sha256(r.account) || sha256('run'::bytea) || sha256(r.run))
WHERE NOT EXISTS (SELECT FROM papers WHERE key = $2) AND r.handle = $1 AND r.status IN ('ready', 'running', 'waiting', 'parked') AND NOT i.applied AND i.state = 'pending'`

	// pgClaim claims the run that the previous statement of the transaction has decided.
	pgClaim = `
UPDATE runs SET status = 'running', fence = fence + 1, owner = $2, lease_until = now() + $3 * interval '1 microsecond', updated_at = now()
WHERE key = $1 AND status = 'ready' AND current_setting('fermata.run', true) <> '' RETURNING fence`

	pgLoad = `
SELECT c.id, c.version, p.data FROM checkpoints AS c JOIN checkpoint_parts AS p ON p.checkpoint = c.id WHERE c.digest = $1`
)

// rawPostgres runs on a database with as many connections and the same settings as the store.
type rawPostgres struct {
	pool    *pgxpool.Pool
	account []byte
}

// poolSize is the store's default; node-postgres has the same.
const poolSize = 10

func newRawPostgres(ctx context.Context, connString string) (*rawPostgres, error) {
	made, err := postgres.Open(ctx, connString, postgres.Config{}) // creates the tables
	if err != nil {
		return nil, err
	}
	if err := made.Close(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(connString)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	for name, value := range map[string]string{
		"search_path": "fermata", "synchronous_commit": "on", "plan_cache_mode": "force_generic_plan", "jit": "off", "enable_sort": "off", "enable_bitmapscan": "off", "max_parallel_workers_per_gather": "0",
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &rawPostgres{pool: pool, account: []byte(benchAccount)}, nil
}

func (b *rawPostgres) close() error {
	b.pool.Close()
	return nil
}

// digest returns the key of a row.
func (b *rawPostgres) digest(names ...string) []byte {
	sum := sha256.Sum256(b.account)
	all := slices.Clone(sum[:])
	for _, name := range names {
		sum := sha256.Sum256([]byte(name))
		all = append(all, sum[:]...)
	}
	sum = sha256.Sum256(all)
	return sum[:]
}

// exec executes a statement that must change something.
func (b *rawPostgres) exec(ctx context.Context, text string, values ...any) error {
	tag, err := b.pool.Exec(ctx, text, values...)
	if err != nil {
		return err
	}
	return changed(tag)
}

func changed(tag pgconn.CommandTag) error {
	if tag.RowsAffected() == 0 {
		return errNotApplied
	}
	return nil
}

func (b *rawPostgres) create(ctx context.Context, p *rawRun, n store.NewRun) error {
	return b.exec(ctx, pgCreate, withWrites(n.Writes, b.account, []byte(p.run), []byte(p.key), []byte(n.Provider), []byte(n.Graph), n.Input, []byte(n.InputDigest),
		[]byte(n.Owner), n.Lease.Microseconds())...)
}

func (b *rawPostgres) endExecution(ctx context.Context, p *rawRun, end store.ExecutionEnd) error {
	key := b.digest(p.run)
	if len(end.Open) == 0 {
		return b.exec(ctx, pgEndDone, withWrites(end.Writes, key, p.fence, end.Status, end.Outcome, 0, p.checkpoint, end.Checkpoint.BaseVersion,
			b.digest(p.interrupt), b.digest(benchActor, p.key))...)
	}
	delta := end.Checkpoint.Delta
	names, data := make([][]byte, len(delta.Put)), make([][]byte, len(delta.Put))
	for i, put := range delta.Put {
		names[i], data[i] = []byte(put.Name), put.Data
	}
	n := end.Open[0]
	return b.exec(ctx, pgEndWaiting, withWrites(end.Writes, key, p.fence, end.Status, end.Outcome, 1, names, data, []byte(p.interrupt), []byte(n.Address),
		[]byte(n.Kind), n.Data, n.AnswerSchema, []byte(n.ShownDigest), []byte(n.ActionDigest), int64(n.Timeout), n.Timeout.Microseconds())...)
}

func (b *rawPostgres) find(ctx context.Context, p *rawRun) error {
	var run, interrupt, request, dossier []byte
	err := b.pool.QueryRow(ctx, pgFind, b.digest(p.key), b.digest("resume", resumeDocument(p.key))).Scan(&run, &interrupt, &p.revision, &request, &dossier)
	p.run, p.interrupt, p.documents = string(run), string(interrupt), len(request)+len(dossier)
	return err
}

// decide decides, claims the run and loads its checkpoint, in one round trip.
func (b *rawPostgres) decide(ctx context.Context, p *rawRun, d store.Decision) error {
	var batch pgx.Batch
	key, answer := b.digest(p.run), d.Answers[0]
	batch.Queue(pgDecide, withWrites(d.Writes, key, b.account, []byte(d.Actor), []byte(p.key), []byte(d.BodyDigest), []byte(p.run),
		b.digest(p.interrupt), answer.Verdict, []byte(answer.ApprovedDigest), answer.Data, []byte(d.Via))...).Exec(changed)
	batch.Queue(pgClaim, key, []byte(d.Claim.Owner), d.Claim.Lease.Microseconds()).QueryRow(func(row pgx.Row) error { return row.Scan(&p.fence) })
	batch.Queue(pgLoad, key).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var data []byte
			if err := rows.Scan(&p.checkpoint, &p.version, &data); err != nil {
				return err
			}
			p.bytes += len(data)
		}
		return rows.Err()
	})
	return b.pool.SendBatch(ctx, &batch).Close()
}
