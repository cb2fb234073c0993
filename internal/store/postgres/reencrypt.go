package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
)

// sealedColumn is a column with sealed values. Its rows are ordered by a number and a key; where
// the key is sufficient, the number is 0.
type sealedColumn struct {
	field store.SealedField
	read  string // rows after number $1 and key $2, at most $3
	write string // sets the value $4 at number $1 and key $2 if the stored one has the digest $3
}

// keyedColumn returns a sealed column of a table whose rows have a key.
func keyedColumn(what store.SealedField, table, column, account, id string) sealedColumn {
	return sealedColumn{
		field: what,
		read: `
SELECT 0::bigint, key, ` + account + `, ` + id + `, ''::bytea, ` + column + ` FROM ` + table + `
WHERE ` + column + ` IS NOT NULL AND (key, 0::bigint) > ($2, $1::bigint) ORDER BY key LIMIT $3`,
		write: `UPDATE ` + table + ` SET ` + column + ` = $4 WHERE $1::bigint = 0 AND key = $2 AND sha256(` + column + `) = $3`,
	}
}

// sealedColumns lists all of them. A cursor has the index of its column in this list: only append.
var sealedColumns = []sealedColumn{
	keyedColumn(store.SealedRef, "runs", "ref", "account", "run"),
	keyedColumn(store.SealedInput, "runs", "input", "account", "run"),
	keyedColumn(store.SealedOutcome, "runs", "outcome", "account", "run"),
	keyedColumn(store.SealedOutcome, "resumes", "outcome", "account", "run"),
	keyedColumn(store.SealedData, "interrupts", "data", "account", "id"),
	keyedColumn(store.SealedAnswer, "interrupts", "answer", "account", "id"),
	keyedColumn(store.SealedNamedValue, "once", "value", "''::bytea", "name"),
	{
		field: store.SealedReceipt,
		read: `
SELECT number::bigint, interrupt_key, account, interrupt, ''::bytea, receipt FROM effects
WHERE receipt IS NOT NULL AND (interrupt_key, number) > ($2, $1::bigint) ORDER BY interrupt_key, number LIMIT $3`,
		write: `UPDATE effects SET receipt = $4 WHERE number = $1::bigint AND interrupt_key = $2 AND sha256(receipt) = $3`,
	},
	{
		field: store.SealedPart,
		read: `
SELECT p.checkpoint, p.digest, c.account, c.run, p.name, p.data FROM checkpoint_parts AS p JOIN checkpoints AS c ON c.id = p.checkpoint
WHERE (p.checkpoint, p.digest) > ($1::bigint, $2) ORDER BY p.checkpoint, p.digest LIMIT $3`,
		write: `UPDATE checkpoint_parts SET data = $4 WHERE checkpoint = $1 AND digest = $2 AND data_digest = $3`,
	},
	{
		field: store.SealedDocument,
		read: `
SELECT 0::bigint, key, account, id, kind, body FROM papers
WHERE body IS NOT NULL AND (key, 0::bigint) > ($2, $1::bigint) ORDER BY key LIMIT $3`,
		write: `UPDATE papers SET body = $4 WHERE $1::bigint = 0 AND key = $2 AND sha256(body) = $3`,
	},
}

const (
	// reencryptChunk is the number of values per statement.
	reencryptChunk = 64

	// reencryptBudget is the number of bytes that one call of Reencrypt reads, plus one chunk.
	reencryptBudget = 32 << 20
)

// Reencrypt passes sealed values to a function and stores the results; see [store.Maintenance]. The
// function may use the store. Each value is written in its own transaction, because other
// transactions lock the rows of a run in another order.
func (s *Store) Reencrypt(ctx context.Context, after string, limit int, reseal func(store.SealedValue) ([]byte, error)) (next string, err error) {
	from, err := parseReencryptCursor(after)
	if err != nil {
		return "", err
	}
	values, next, err := s.sealedAfter(ctx, from, pageSize(limit, 1000))
	if err != nil {
		return "", err
	}
	replacement := make([][]byte, len(values))
	for i, v := range values {
		if replacement[i], err = reseal(v.SealedValue); err != nil {
			return "", err
		}
	}
	for i, v := range values {
		if replacement[i] == nil {
			continue
		}
		digest := sha256.Sum256(v.Data)
		var t txn
		t.queue(sealedColumns[v.position.column].write, v.position.number, v.position.key, digest[:], replacement[i])
		if err := s.update(ctx, "re-encrypt a value in", &t); err != nil {
			return "", err
		}
	}
	return next, nil
}

// sealedAfter returns the values after a position, and the next cursor, or "" at the end. They are
// of one column: EndExecution copies the outcome of a run to resumes, so those are not read before
// the outcomes of the runs are written.
func (s *Store) sealedAfter(ctx context.Context, at reencryptCursor, limit int) (values []storedValue, next string, err error) {
	for budget := reencryptBudget; len(values) < limit && budget > 0 && at.column < len(sealedColumns); {
		var t txn
		var chunk []storedValue
		wanted := min(limit-len(values), reencryptChunk)
		queryAll(&t, &chunk, scanSealed, sealedColumns[at.column].read, at.number, at.key, wanted)
		if err := s.view(ctx, "read sealed values of", &t); err != nil {
			return nil, "", err
		}
		for _, v := range chunk {
			v.Field, v.position.column = sealedColumns[at.column].field, at.column
			values, at = append(values, v), v.position
			budget -= len(v.Data)
		}
		if len(chunk) < wanted {
			at = reencryptCursor{column: at.column + 1, key: []byte{}}
			if len(values) > 0 { //mutate:postgres-reencryption-one-table
				break
			}
		}
	}
	if at.column == len(sealedColumns) {
		return values, "", nil
	}
	return values, at.String(), nil
}

// storedValue is a value and its position.
type storedValue struct {
	store.SealedValue
	position reencryptCursor
}

func scanSealed(rows pgx.CollectableRow) (v storedValue, err error) {
	err = rows.Scan(&v.position.number, &v.position.key, nameScanner{&v.Account}, nameScanner{&v.ID}, nameScanner{&v.Part}, &v.Data)
	return v, err
}

// reencryptCursor is the position of a value.
type reencryptCursor struct {
	column int // index in sealedColumns
	number int64
	key    []byte // not nil, which would be NULL
}

// String returns the cursor after the value.
func (p reencryptCursor) String() string {
	cursor := binary.BigEndian.AppendUint64([]byte{byte(p.column)}, uint64(p.number))
	return base64.RawURLEncoding.EncodeToString(append(cursor, p.key...))
}

func parseReencryptCursor(cursor string) (p reencryptCursor, err error) {
	if cursor == "" {
		return reencryptCursor{key: []byte{}}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(data) < 9 || int(data[0]) >= len(sealedColumns) {
		return reencryptCursor{}, store.ErrInvalid
	}
	return reencryptCursor{column: int(data[0]), number: int64(binary.BigEndian.Uint64(data[1:9])), key: data[9:]}, nil
}
