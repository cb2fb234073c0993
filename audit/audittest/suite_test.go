package audittest

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/audit"
)

// inMemory is the reference with a back door.
type inMemory struct {
	*audit.Memory
	mu      sync.Mutex
	changed map[string][][]byte
}

func (m *inMemory) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
	m.mu.Lock()
	rows, changed := m.changed[account]
	m.mu.Unlock()
	if !changed {
		return m.Memory.Records(ctx, account, from, to)
	}
	end := int64(len(rows))
	if to > 0 {
		end = min(to, end)
	}
	return func(yield func([]byte, error) bool) {
		for i := max(from, 1); i <= end; i++ {
			if !yield(rows[i-1], nil) {
				return
			}
		}
	}
}

func subject() (Subject, *inMemory) {
	m := &inMemory{Memory: new(audit.Memory), changed: map[string][][]byte{}}
	return Subject{
		Log: m,
		Append: func(ctx context.Context, account string, r audit.Record) error {
			_, err := m.Append(ctx, account, r)
			return err
		},
		Tamper: func(_ testing.TB, account string, rows [][]byte) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.changed[account] = rows
		},
	}, m
}

func TestLog_Memory(t *testing.T) {
	Log(t, func(*testing.T) Subject { s, _ := subject(); return s })
}

// watched notices failures instead of failing.
type watched struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (w *watched) fail() { w.mu.Lock(); w.failed = true; w.mu.Unlock() }

func (w *watched) Helper()                  {}
func (w *watched) Error(...any)             { w.fail() }
func (w *watched) Errorf(string, ...any)    { w.fail() }
func (w *watched) Fatal(...any)             { w.fail(); panic(stopped{}) }
func (w *watched) Fatalf(string, ...any)    { w.fail(); panic(stopped{}) }
func (w *watched) Context() context.Context { return w.TB.Context() }
func (w *watched) Log(...any)               {}
func (w *watched) Logf(string, ...any)      {}
func (w *watched) Cleanup(func())           {}
func (w *watched) Skip(...any)              { panic("a case must not be skipped") }

type stopped struct{}

// noticed runs all cases and returns the names of those that failed.
func noticed(t *testing.T, open func() Subject) (failed []string) {
	t.Helper()
	for _, c := range cases {
		w := &watched{TB: t}
		func() {
			defer func() {
				if p := recover(); p != nil && p != (stopped{}) {
					panic(p)
				}
			}()
			c.run(w, open())
		}()
		if w.failed {
			failed = append(failed, c.name)
		}
	}
	return failed
}

// Each of these is a mistake that somebody could make in a store. The suite must notice.
func TestLog_NoticesMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *Subject, m *inMemory)
		by    string // the case that must notice
	}{
		"written anew on the way in": {func(s *Subject, m *inMemory) {
			s.Log = changed{inMemory: m, records: func(raw []byte) []byte {
				var v map[string]any
				if json.Unmarshal(raw, &v) != nil {
					return raw
				}
				again, _ := json.Marshal(v)
				return again
			}}
		}, "Append_KeepsWhatTheReferenceKeeps"},
		"zero bytes cut off": {func(s *Subject, m *inMemory) {
			s.Log = changed{inMemory: m, records: func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte(`\u0000`), nil) }}
		}, "Append_KeepsWhatTheReferenceKeeps"},
		"accounts that differ in case": {func(s *Subject, m *inMemory) {
			inner := s.Append
			s.Append = func(ctx context.Context, account string, r audit.Record) error {
				return inner(ctx, strings.ToLower(account), r)
			}
		}, "I8_AccountsAreApart"},
		"the last one forgotten": {func(s *Subject, m *inMemory) {
			s.Log = changed{inMemory: m, bounds: func(from, to int64) (int64, int64) {
				if to > 1 {
					to--
				}
				return from, to
			}}
		}, "Records_Ranges"},
		"an append without a lock": {func(s *Subject, m *inMemory) {
			s.Append = func(ctx context.Context, account string, r audit.Record) error {
				if strings.HasSuffix(r.Place.Interrupt, "7") {
					return nil // lost to another writer
				}
				_, err := m.Append(ctx, account, r)
				return err
			}
		}, "I12_AppendsAtOnceMakeOneChain"},
		"appends after cancel": {func(s *Subject, m *inMemory) {
			s.Append = func(ctx context.Context, account string, r audit.Record) error {
				_, err := m.Append(context.WithoutCancel(ctx), account, r)
				return err
			}
		}, "Append_ACancelledOneLeavesNothing"},
		"unknown hashes are zero":  {func(s *Subject, m *inMemory) { s.Log = zeroHashes{m} }, "Hashes_UnknownIsNotFound"},
		"checkpoints as they come": {func(s *Subject, m *inMemory) { s.Log = &unsorted{inMemory: m} }, "Checkpoints_BySizeAndOnce"},
		"repairs what it reads": {func(s *Subject, m *inMemory) {
			s.Log = changed{inMemory: m, repair: true}
		}, "Tamper_AnyByteIsFound"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := noticed(t, func() Subject {
				s, m := subject()
				test.spoil(&s, m)
				return s
			})
			if !slices.Contains(failed, test.by) {
				t.Errorf("noticed by %q; want %s among them", failed, test.by)
			}
		})
	}
	if failed := noticed(t, func() Subject { s, _ := subject(); return s }); len(failed) != 0 {
		t.Errorf("nothing was wrong, and %q failed", failed)
	}
}

// changed is a log that gives back something else.
type changed struct {
	*inMemory
	records func([]byte) []byte
	bounds  func(from, to int64) (int64, int64)
	repair  bool
}

func (c changed) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
	if c.repair {
		return c.Memory.Records(ctx, account, from, to)
	}
	if c.bounds != nil {
		from, to = c.bounds(from, to)
	}
	return func(yield func([]byte, error) bool) {
		for raw, err := range c.inMemory.Records(ctx, account, from, to) {
			if c.records != nil {
				raw = c.records(raw)
			}
			if !yield(raw, err) {
				return
			}
		}
	}
}

type zeroHashes struct{ *inMemory }

func (z zeroHashes) Hashes(ctx context.Context, account string, indexes []int64) ([]audit.Hash, error) {
	hashes := make([]audit.Hash, len(indexes))
	for i, index := range indexes {
		if got, err := z.Memory.Hashes(ctx, account, []int64{index}); err == nil {
			hashes[i] = got[0]
		}
	}
	return hashes, nil
}

type unsorted struct {
	*inMemory
	kept [][]byte
}

func (u *unsorted) KeepCheckpoint(_ context.Context, _ string, c audit.Checkpoint) error {
	u.kept = append(u.kept, c.Note)
	return nil
}

func (u *unsorted) Checkpoints(context.Context, string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, c := range u.kept {
			if !yield(c, nil) {
				return
			}
		}
	}
}
