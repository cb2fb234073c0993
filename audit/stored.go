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

	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/store"
)

// Lines is what a store has to offer for a log: the lines of its chains, and papers to keep checkpoints and the tree in.
type Lines interface {
	store.AuditLog
	Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error)
	Papers(ctx context.Context, account string, kind store.PaperKind, filter store.PaperFilter) ([]store.Paper, error)
	Amend(ctx context.Context, account string, beside store.Beside) error
}

// CheckpointPaper is the kind of paper in which checkpoints are kept.
const CheckpointPaper store.PaperKind = "audit-checkpoint"

// Stored is the log of a store that keeps nothing but lines. It makes the tree of them when it is asked for, and keeps what is complete of it as papers.
type Stored struct {
	lines  Lines
	height int

	mu    sync.Mutex
	known map[rootAt]Hash // the roots of complete tiles: one for 256 records
}

var _ Log = (*Stored)(nil)

// Over makes a log of a store.
func Over(lines Lines) *Stored {
	return &Stored{lines: lines, height: tileHeight, known: make(map[rootAt]Hash)}
}

// Head returns the head of an account. If the stored lines are not those that the store's own head is about, the head is one that nobody can
// sign, and [Verify] says what is wrong.
func (s *Stored) Head(ctx context.Context, account string) (Head, error) {
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
func (s *Stored) Hashes(ctx context.Context, account string, indexes []int64) ([]Hash, error) {
	end, err := s.lines.AuditHead(ctx, account)
	if err != nil {
		return nil, err
	}
	return s.tiles(ctx, account, end).ReadHashes(indexes)
}

// Records returns the lines as they are stored.
func (s *Stored) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
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

// checkpointFacts is what the paper of a checkpoint says. A checkpoint is no secret, so nothing is sealed.
type checkpointFacts struct {
	Note string `json:"note"`
}

// Checkpoints returns the signed notes of an account, by growing size.
func (s *Stored) Checkpoints(ctx context.Context, account string) iter.Seq2[[]byte, error] {
	return s.CheckpointsAfter(ctx, account, 0)
}

// CheckpointsAfter returns those that sign more records than so many.
func (s *Stored) CheckpointsAfter(ctx context.Context, account string, size int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		filter := store.PaperFilter{After: sizeID(size), Limit: 1000}
		for {
			page, err := s.lines.Papers(ctx, account, CheckpointPaper, filter)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, paper := range page {
				note, err := noteOf(paper)
				if !yield(note, err) || err != nil {
					return
				}
				filter.After = paper.ID
			}
			if len(page) < filter.Limit {
				return
			}
		}
	}
}

func noteOf(paper store.Paper) ([]byte, error) {
	var facts checkpointFacts
	if err := strictjson.Decode(bytes.TrimSpace(paper.Facts), &facts); err != nil {
		return nil, fmt.Errorf("%w: paper %s: %w", ErrCheckpoint, paper.ID, err)
	}
	return []byte(facts.Note), nil
}

// sizeID names the paper of a checkpoint so that papers are in the order of their sizes.
func sizeID(size int64) string { return fmt.Sprintf("%020d", size) }

// fewNotes is how many checkpoints are read to find the last one. If there are more, it is searched for.
const fewNotes = 100

// lastNote finds the last checkpoint; nil if there is none. After years of signing there are many, so it halves the sizes in which it can be.
func (s *Stored) lastNote(ctx context.Context, account string) ([]byte, error) {
	beyond := func(size int64, limit int) ([]store.Paper, error) {
		return s.lines.Papers(ctx, account, CheckpointPaper, store.PaperFilter{After: sizeID(size), Limit: limit})
	}
	page, err := beyond(0, fewNotes)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	last := page[len(page)-1]
	if len(page) < fewNotes {
		return noteOf(last)
	}
	low, high := int64(0), int64(math.MaxInt64) // the size of the last one that was found, and one beyond which there is none
	for {
		if low, err = strconv.ParseInt(last.ID, 10, 64); err != nil {
			return nil, fmt.Errorf("%w: paper %s", ErrCheckpoint, last.ID)
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

// KeepCheckpoint adds a checkpoint.
func (s *Stored) KeepCheckpoint(ctx context.Context, account string, c Checkpoint) error {
	facts, err := json.Marshal(checkpointFacts{Note: string(c.Note)})
	if err != nil {
		return err
	}
	err = s.lines.Amend(ctx, account, store.Beside{Papers: []store.PaperChange{{Kind: CheckpointPaper, ID: sizeID(c.Size), Facts: facts}}})
	if errors.Is(err, store.ErrStale) {
		return nil // there is one of this size
	}
	return err
}
