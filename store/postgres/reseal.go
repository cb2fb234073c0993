package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/store"
)

// sealedColumn is a column with sealed values. Its rows have an order by a number and a key; where the key is enough, the number is 0.
type sealedColumn struct {
	what  store.SealedWhat
	read  string // rows behind number $1 and key $2, at most $3
	write string // the value $4 at number $1 and key $2, if the one that is there has the digest $3
}

// ofRows is a sealed column of a table whose rows have a key.
func ofRows(what store.SealedWhat, table, column, account, id string) sealedColumn {
	return sealedColumn{
		what: what,
		read: `
SELECT 0::bigint, key, ` + account + `, ` + id + `, ''::bytea, ` + column + ` FROM ` + table + `
WHERE ` + column + ` IS NOT NULL AND (key, 0::bigint) > ($2, $1::bigint) ORDER BY key LIMIT $3`,
		write: `UPDATE ` + table + ` SET ` + column + ` = $4 WHERE $1::bigint = 0 AND key = $2 AND sha256(` + column + `) = $3`,
	}
}

// sealedColumns are all there are. A cursor has the place of its column in this list: add new ones at the end.
var sealedColumns = []sealedColumn{
	ofRows(store.SealedRef, "runs", "ref", "account", "run"),
	ofRows(store.SealedInput, "runs", "input", "account", "run"),
	ofRows(store.SealedOutcome, "runs", "outcome", "account", "run"),
	ofRows(store.SealedOutcome, "resumes", "outcome", "account", "run"),
	ofRows(store.SealedData, "interrupts", "data", "account", "id"),
	ofRows(store.SealedAnswer, "interrupts", "answer", "account", "id"),
	ofRows(store.SealedOnce, "once", "value", "''::bytea", "name"),
	{
		what: store.SealedReceipt,
		read: `
SELECT number::bigint, interrupt_key, account, interrupt, ''::bytea, receipt FROM effects
WHERE receipt IS NOT NULL AND (interrupt_key, number) > ($2, $1::bigint) ORDER BY interrupt_key, number LIMIT $3`,
		write: `UPDATE effects SET receipt = $4 WHERE number = $1::bigint AND interrupt_key = $2 AND sha256(receipt) = $3`,
	},
	{
		what: store.SealedPart,
		read: `
SELECT p.checkpoint, p.digest, c.account, c.run, p.name, p.data FROM checkpoint_parts AS p JOIN checkpoints AS c ON c.id = p.checkpoint
WHERE (p.checkpoint, p.digest) > ($1::bigint, $2) ORDER BY p.checkpoint, p.digest LIMIT $3`,
		write: `UPDATE checkpoint_parts SET data = $4 WHERE checkpoint = $1 AND digest = $2 AND data_digest = $3`,
	},
	{
		what: store.SealedPaper,
		read: `
SELECT 0::bigint, key, account, id, kind, body FROM papers
WHERE body IS NOT NULL AND (key, 0::bigint) > ($2, $1::bigint) ORDER BY key LIMIT $3`,
		write: `UPDATE papers SET body = $4 WHERE $1::bigint = 0 AND key = $2 AND sha256(body) = $3`,
	},
}

const (
	// resealChunk is how many values are read by one statement.
	resealChunk = 64

	// resealBudget is how many bytes one call of Reseal reads, and one chunk more.
	resealBudget = 32 << 20
)

// Reseal hands sealed values to a function; see [store.Keeping]. The function may use the store. Each value is written by a
// transaction of its own, because whoever works on a run locks its rows in another order.
func (s *Store) Reseal(ctx context.Context, after string, limit int, reseal func(store.Sealed) ([]byte, error)) (next string, err error) {
	from, err := parseSealedPlace(after)
	if err != nil {
		return "", err
	}
	values, next, err := s.sealedBehind(ctx, from, page(limit, 1000))
	if err != nil {
		return "", err
	}
	anew := make([][]byte, len(values))
	for i, v := range values {
		if anew[i], err = reseal(v.Sealed); err != nil {
			return "", err
		}
	}
	for i, v := range values {
		if anew[i] == nil {
			continue
		}
		digest := sha256.Sum256(v.Data)
		var t turn
		t.queue(sealedColumns[v.place.column].write, v.place.number, v.place.key, digest[:], anew[i])
		if err := s.do(ctx, "seal a value anew in", &t); err != nil {
			return "", err
		}
	}
	return next, nil
}

// sealedBehind returns values behind a place, and the cursor behind them, or "" at the end. They are of one column: a rest hands the outcome of a run to
// resumes, so those are not read before what is to become of the runs' is written.
func (s *Store) sealedBehind(ctx context.Context, at sealedPlace, limit int) (values []sealedValue, next string, err error) {
	for budget := resealBudget; len(values) < limit && budget > 0 && at.column < len(sealedColumns); {
		var t turn
		var chunk []sealedValue
		wanted := min(limit-len(values), resealChunk)
		list(&t, &chunk, scanSealed, sealedColumns[at.column].read, at.number, at.key, wanted)
		if err := s.look(ctx, "read sealed values of", &t); err != nil {
			return nil, "", err
		}
		for _, v := range chunk {
			v.What, v.place.column = sealedColumns[at.column].what, at.column
			values, at = append(values, v), v.place
			budget -= len(v.Data)
		}
		if len(chunk) < wanted {
			at = sealedPlace{column: at.column + 1, key: []byte{}}
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

// sealedValue is a value and where it is.
type sealedValue struct {
	store.Sealed
	place sealedPlace
}

func scanSealed(rows pgx.CollectableRow) (v sealedValue, err error) {
	err = rows.Scan(&v.place.number, &v.place.key, name{&v.Account}, name{&v.ID}, name{&v.Part}, &v.Data)
	return v, err
}

// sealedPlace is where a value is.
type sealedPlace struct {
	column int // of sealedColumns
	number int64
	key    []byte // not nil, which would be NULL
}

// String is the cursor behind the value.
func (p sealedPlace) String() string {
	cursor := binary.BigEndian.AppendUint64([]byte{byte(p.column)}, uint64(p.number))
	return base64.RawURLEncoding.EncodeToString(append(cursor, p.key...))
}

func parseSealedPlace(cursor string) (p sealedPlace, err error) {
	if cursor == "" {
		return sealedPlace{key: []byte{}}, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(data) < 9 || int(data[0]) >= len(sealedColumns) {
		return sealedPlace{}, store.ErrKey
	}
	return sealedPlace{column: int(data[0]), number: int64(binary.BigEndian.Uint64(data[1:9])), key: data[9:]}, nil
}
