package audit

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
)

// Memory is a log in memory, for tests and as the reference implementation. The zero value is an
// empty log.
type Memory struct {
	mu       sync.Mutex
	accounts map[string]*memoryLog
}

type memoryLog struct {
	head        Head
	records     [][]byte
	hashes      []Hash
	checkpoints []Checkpoint
}

var _ Log = (*Memory)(nil)

// Append appends a record to the log of an account.
func (m *Memory) Append(ctx context.Context, account string, r Record) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(account)
	entry, head, err := Append(l.head, r)
	if err != nil {
		return Entry{}, err
	}
	l.head, l.records, l.hashes = head, append(l.records, entry.Raw), append(l.hashes, entry.Hashes...)
	entry.Raw = bytes.Clone(entry.Raw) // the caller must not share the stored bytes
	return entry, nil
}

func (m *Memory) log(account string) *memoryLog {
	if l, ok := m.accounts[account]; ok {
		return l
	}
	if m.accounts == nil {
		m.accounts = make(map[string]*memoryLog)
	}
	m.accounts[account] = &memoryLog{head: EmptyHead(account)}
	return m.accounts[account]
}

// Head returns the head of an account.
func (m *Memory) Head(ctx context.Context, account string) (Head, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.log(account).head, ctx.Err()
}

// Records returns records as stored.
func (m *Memory) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		m.mu.Lock()
		records := m.log(account).records // existing records never change
		m.mu.Unlock()
		end := int64(len(records))
		if to > 0 {
			end = min(to, end)
		}
		for i := max(from, 1); i <= end; i++ {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(records[i-1], nil) {
				return
			}
		}
	}
}

// Hashes returns hashes of the tree.
func (m *Memory) Hashes(ctx context.Context, account string, indexes []int64) ([]Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := m.log(account).hashes
	hashes := make([]Hash, len(indexes))
	for i, index := range indexes {
		if index < 0 || index >= int64(len(stored)) {
			return nil, fmt.Errorf("%w: hash %d", ErrNotFound, index)
		}
		hashes[i] = stored[index]
	}
	return hashes, ctx.Err()
}

// Checkpoints returns the signed notes of an account, by increasing size.
func (m *Memory) Checkpoints(ctx context.Context, account string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		m.mu.Lock()
		checkpoints := slices.Clone(m.log(account).checkpoints)
		m.mu.Unlock()
		for _, c := range checkpoints {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			if !yield(c.Note, nil) {
				return
			}
		}
	}
}

// AddCheckpoint adds a checkpoint.
func (m *Memory) AddCheckpoint(ctx context.Context, account string, c Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.log(account)
	at, known := slices.BinarySearchFunc(l.checkpoints, c, compareSizes)
	if !known {
		c.Note = bytes.Clone(c.Note)
		l.checkpoints = slices.Insert(l.checkpoints, at, c)
	}
	return nil
}
