package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"sync"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// LineStore is the part of a store that a log needs: the audit lines, and documents for checkpoints
// and tiles.
type LineStore interface {
	store.AuditLog
	Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error)
	Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error)
	CommitWrites(ctx context.Context, account string, writes store.Writes) error
}

// CheckpointDocument is the document kind of checkpoints.
const CheckpointDocument store.DocumentKind = "audit-checkpoint"

// StoreLog is the log of a store that keeps only audit lines. It computes the tree on demand and
// keeps complete tiles as documents.
type StoreLog struct {
	lines  LineStore
	height int

	mu        sync.Mutex
	tileRoots map[accountTile]Hash // the roots of complete tiles, one per 256 records
}

var _ Log = (*StoreLog)(nil)

// NewStoreLog returns the log of a store.
func NewStoreLog(lines LineStore) *StoreLog {
	return &StoreLog{lines: lines, height: tileHeight, tileRoots: make(map[accountTile]Hash)}
}

// Head returns the head of an account. If the stored lines do not match the store's own head, the
// returned head cannot be signed, and [Verify] reports the problem.
func (s *StoreLog) Head(ctx context.Context, account string) (Head, error) {
	end, err := s.lines.AuditHead(ctx, account)
	if err != nil {
		return Head{}, err
	}
	head, err := headAt(account, end.Seq, s.tiles(ctx, account, end))
	if errors.Is(err, ErrNotFound) || err == nil && head.Last != end.Hash {
		return Head{Account: account, Size: end.Seq, Last: end.Hash}, nil
	}
	return head, err
}

// Hashes returns hashes of the tree.
func (s *StoreLog) Hashes(ctx context.Context, account string, indexes []int64) ([]Hash, error) {
	end, err := s.lines.AuditHead(ctx, account)
	if err != nil {
		return nil, err
	}
	return s.tiles(ctx, account, end).ReadHashes(indexes)
}

// Records returns the lines as stored.
func (s *StoreLog) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		after := max(from, 1) - 1
		for to <= 0 || after < to {
			limit := 1000
			if to > 0 {
				limit = int(min(to-after, 1000))
			}
			page, err := s.lines.AuditLines(ctx, account, after, limit)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, line := range page {
				if to > 0 && line.Seq > to {
					return
				}
				if after = line.Seq; !yield(line.Raw, nil) {
					return
				}
			}
			if len(page) < limit {
				return
			}
		}
	}
}

// checkpointIndex is the index of a checkpoint document. A checkpoint is not secret, so it is not
// encrypted.
type checkpointIndex struct {
	Note string `json:"note"`
}

// Checkpoints returns the signed notes of an account, by increasing size.
func (s *StoreLog) Checkpoints(ctx context.Context, account string) iter.Seq2[[]byte, error] {
	return s.CheckpointsAfter(ctx, account, 0)
}

// CheckpointsAfter returns the checkpoints with more than size records.
func (s *StoreLog) CheckpointsAfter(ctx context.Context, account string, size int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		filter := store.DocumentFilter{After: sizeID(size), Limit: 1000}
		for {
			page, err := s.lines.Documents(ctx, account, CheckpointDocument, filter)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, doc := range page {
				note, err := noteOf(doc)
				if !yield(note, err) || err != nil {
					return
				}
				filter.After = doc.ID
			}
			if len(page) < filter.Limit {
				return
			}
		}
	}
}

func noteOf(doc store.Document) ([]byte, error) {
	var index checkpointIndex
	if err := strictjson.Decode(bytes.TrimSpace(doc.Index), &index); err != nil {
		return nil, fmt.Errorf("%w: document %s: %w", ErrCheckpoint, doc.ID, err)
	}
	return []byte(index.Note), nil
}

// sizeID returns the id of a checkpoint document, so that documents sort by size.
func sizeID(size int64) string { return fmt.Sprintf("%020d", size) }

// lastNotePage is the number of checkpoints that lastNote reads before it searches.
const lastNotePage = 100

// lastNote returns the last checkpoint, or nil. There can be many, so it uses a binary search over
// the sizes.
func (s *StoreLog) lastNote(ctx context.Context, account string) ([]byte, error) {
	beyond := func(size int64, limit int) ([]store.Document, error) {
		return s.lines.Documents(ctx, account, CheckpointDocument, store.DocumentFilter{After: sizeID(size), Limit: limit})
	}
	page, err := beyond(0, lastNotePage)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	last := page[len(page)-1]
	if len(page) < lastNotePage {
		return noteOf(last)
	}
	// the size of the last checkpoint found, and an upper bound
	low, high := int64(0), int64(math.MaxInt64)
	for {
		if low, err = strconv.ParseInt(last.ID, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: document %s", ErrCheckpoint, last.ID)
		}
		for page = nil; low < high && len(page) == 0; {
			middle := low + (high-low)/2
			if page, err = beyond(middle, 1); err != nil {
				return nil, err
			}
			if len(page) == 0 {
				high = middle
			}
		}
		if len(page) == 0 {
			return noteOf(last)
		}
		last = page[0]
	}
}

// AddCheckpoint adds a checkpoint.
func (s *StoreLog) AddCheckpoint(ctx context.Context, account string, c Checkpoint) error {
	index, err := json.Marshal(checkpointIndex{Note: string(c.Note)})
	if err != nil {
		return err
	}
	err = s.lines.CommitWrites(ctx, account, store.Writes{Documents: []store.DocumentChange{{Kind: CheckpointDocument, ID: sizeID(c.Size), Index: index}}})
	if errors.Is(err, store.ErrStale) {
		return nil // there is already one of this size
	}
	return err
}
