package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// Proof proves that a record has its number in a signed log. [CheckProof] needs only the proof and
// the public key.
type Proof struct {
	Format string `json:"format"`
	// Record is the record as stored, Checkpoint the signed note, and Hashes the path from the
	// record to the root.
	Record     string `json:"record"`
	Checkpoint string `json:"checkpoint"`
	Hashes     []Hash `json:"hashes"`
}

// Consistency proves that a log only grew between two checkpoints: everything that the older one
// signs is unchanged in the newer one.
type Consistency struct {
	Format string `json:"format"`
	Old    string `json:"old"`
	New    string `json:"new"`
	Hashes []Hash `json:"hashes"`
}

const (
	proofFormat       = "fermata-audit-proof/1"
	consistencyFormat = "fermata-audit-consistency/1"
)

// Prove writes the proof of a record to w, against the newest checkpoint. The proof is checked
// before it is written. Errors are ErrNotFound, ErrNotSigned, ErrUntrusted if no trusted key has
// signed the checkpoint, and ErrProof if the stored records are not the signed ones.
func Prove(ctx context.Context, log Log, account string, seq int64, trust Trust, w io.Writer) (Proof, error) {
	raw, err := oneRecord(ctx, log, account, seq)
	if err != nil {
		return Proof{}, err
	}
	last, err := lastCheckpoint(ctx, log, account)
	if err != nil {
		return Proof{}, err
	}
	if last.Size < seq {
		return Proof{}, fmt.Errorf("%w: the newest checkpoint ends with record %d", ErrNotSigned, last.Size)
	}
	hashes, err := tlog.ProveRecord(last.Size, seq-1, hashReader(ctx, log, account))
	if err != nil {
		return Proof{}, err
	}
	p := Proof{Format: proofFormat, Record: string(raw), Checkpoint: string(last.Note), Hashes: hashes}
	if _, err := p.Check(trust); err != nil {
		return Proof{}, err
	}
	return p, writeJSON(w, p)
}

// NewProof returns the proof of a record with its path to the root of a checkpoint.
func NewProof(record, checkpoint string, hashes []Hash) Proof {
	return Proof{Format: proofFormat, Record: record, Checkpoint: checkpoint, Hashes: hashes}
}

// ProveRecords returns the newest checkpoint and, by number, the paths of records to its root. A
// record after the checkpoint has none. It returns ErrNotSigned without a checkpoint.
func ProveRecords(ctx context.Context, log Log, account string, seqs []int64) (Checkpoint, map[int64][]Hash, error) {
	last, err := lastCheckpoint(ctx, log, account)
	if err != nil {
		return last, nil, err
	}
	paths := make(map[int64][]Hash)
	for _, seq := range seqs {
		if seq > last.Size {
			continue
		}
		if paths[seq], err = tlog.ProveRecord(last.Size, seq-1, hashReader(ctx, log, account)); err != nil {
			return last, nil, err
		}
	}
	return last, paths, nil
}

func oneRecord(ctx context.Context, log Log, account string, seq int64) ([]byte, error) {
	if seq < 1 {
		return nil, fmt.Errorf("%w: number %d", ErrNotFound, seq)
	}
	for raw, err := range log.Records(ctx, account, seq, seq) {
		return raw, err
	}
	return nil, fmt.Errorf("%w: number %d", ErrNotFound, seq)
}

// ProvenRecord is the result of a checked proof.
type ProvenRecord struct {
	Account    string
	Seq        int64
	Kind       Kind
	Time       Timestamp
	Raw        []byte
	Checkpoint Checkpoint
}

// CheckProof checks a proof offline and writes the result to w. Errors are ErrProof and
// ErrUntrusted.
func CheckProof(proof []byte, trust Trust, w io.Writer) (ProvenRecord, error) {
	var p Proof
	if err := strictjson.Decode(proof, &p); err != nil {
		return ProvenRecord{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	c, err := p.Check(trust)
	if err != nil {
		return ProvenRecord{}, err
	}
	_, err = fmt.Fprintf(w, "Record %d of account %q (%s, %s) is in the log %s,\nas signed at a size of %d records.\n%s%s\n",
		c.Seq, c.Account, c.Kind, c.Time, c.Checkpoint.Origin, c.Checkpoint.Size, DescribeDecision([]byte(p.Record)), c.Raw)
	return c, err
}

// Check checks the proof of a record offline. Errors are those of [CheckProof].
func (p Proof) Check(trust Trust) (ProvenRecord, error) {
	if p.Format != proofFormat {
		return ProvenRecord{}, fmt.Errorf("%w: the format is not %s", ErrProof, proofFormat)
	}
	signed, err := trust.Open([]byte(p.Checkpoint))
	if err != nil {
		return ProvenRecord{}, err
	}
	h, err := readHeader([]byte(p.Record))
	if err != nil {
		return ProvenRecord{}, fmt.Errorf("%w: %w", ErrProof, err)
	}
	hash := HashOf([]byte(p.Record))
	if err := tlog.CheckRecord(p.Hashes, signed.Size, signed.Root, h.seq-1, hash); err != nil {
		return ProvenRecord{}, fmt.Errorf("%w: the record does not match record %d of the signed log: %w", ErrProof, h.seq, err)
	}
	if first := (Head{Size: 1, First: hash}); h.seq == 1 && first.Origin() != signed.Origin {
		return ProvenRecord{}, fmt.Errorf("%w: the log %s does not begin with this record", ErrProof, signed.Origin)
	}
	return ProvenRecord{Account: h.account, Seq: h.seq, Kind: h.kind, Time: h.time, Raw: []byte(p.Record), Checkpoint: signed}, nil
}

// ProveConsistency writes the proof that a log only grew since an older checkpoint, against the
// newest one. The older one may come from anywhere. It returns ErrUntrusted, ErrNotSigned without a
// newer checkpoint, and ErrFork if the log does not extend the older one.
func ProveConsistency(ctx context.Context, log Log, account string, old []byte, trust Trust, w io.Writer) (Consistency, error) {
	first, err := trust.Open(old)
	if err != nil {
		return Consistency{}, err
	}
	last, err := lastCheckpoint(ctx, log, account)
	if err != nil {
		return Consistency{}, err
	}
	hashes := hashReader(ctx, log, account)
	if err := checkExtends(last, first, hashes); err != nil {
		return Consistency{}, err
	}
	path, err := tlog.ProveTree(last.Size, first.Size, hashes)
	if err != nil {
		return Consistency{}, err
	}
	c := Consistency{Format: consistencyFormat, Old: string(old), New: string(last.Note), Hashes: path}
	if _, _, err := c.check(trust); err != nil {
		return Consistency{}, err
	}
	return c, writeJSON(w, c)
}

// CheckConsistency checks such a proof offline and returns the two checkpoints. Errors are those of
// CheckProof.
func CheckConsistency(proof []byte, trust Trust, w io.Writer) (first, last Checkpoint, err error) {
	var c Consistency
	if err := strictjson.Decode(proof, &c); err != nil {
		return first, last, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if first, last, err = c.check(trust); err != nil {
		return Checkpoint{}, Checkpoint{}, err
	}
	_, err = fmt.Fprintf(w, "The log %s only grew, from %d to %d records.\n", last.Origin, first.Size, last.Size)
	return first, last, err
}

func (c Consistency) check(trust Trust) (first, last Checkpoint, err error) {
	if c.Format != consistencyFormat {
		return first, last, fmt.Errorf("%w: the format is not %s", ErrProof, consistencyFormat)
	}
	if first, err = trust.Open([]byte(c.Old)); err != nil {
		return first, last, err
	}
	if last, err = trust.Open([]byte(c.New)); err != nil {
		return first, last, err
	}
	if first.Origin != last.Origin {
		return first, last, fmt.Errorf("%w: the checkpoints belong to different logs", ErrProof)
	}
	if err := tlog.CheckTree(c.Hashes, last.Size, last.Root, first.Size, first.Root); err != nil {
		return first, last, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return first, last, nil
}

func writeJSON(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
