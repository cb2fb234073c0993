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

	"github.com/fermata-go/fermata/internal/audit"
)

// memoryLog is the reference with access for tampering.
type memoryLog struct {
	*audit.Memory
	mu      sync.Mutex
	changed map[string][][]byte
}

func (m *memoryLog) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
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

func newSubject() (Subject, *memoryLog) {
	m := &memoryLog{Memory: new(audit.Memory), changed: map[string][][]byte{}}
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
	Log(t, func(*testing.T) Subject { s, _ := newSubject(); return s })
}

// recordingTB records failures instead of failing the test.
type recordingTB struct {
	testing.TB
	mu     sync.Mutex
	failed bool
}

func (w *recordingTB) fail() { w.mu.Lock(); w.failed = true; w.mu.Unlock() }

func (w *recordingTB) Helper()                  {}
func (w *recordingTB) Error(...any)             { w.fail() }
func (w *recordingTB) Errorf(string, ...any)    { w.fail() }
func (w *recordingTB) Fatal(...any)             { w.fail(); panic(testStopped{}) }
func (w *recordingTB) Fatalf(string, ...any)    { w.fail(); panic(testStopped{}) }
func (w *recordingTB) Context() context.Context { return w.TB.Context() }
func (w *recordingTB) Log(...any)               {}
func (w *recordingTB) Logf(string, ...any)      {}
func (w *recordingTB) Cleanup(func())           {}
func (w *recordingTB) Skip(...any)              { panic("a case must not be skipped") }

type testStopped struct{}

// failedCases runs all cases and returns the names of those that failed.
func failedCases(t *testing.T, open func() Subject) (failed []string) {
	t.Helper()
	for _, c := range cases {
		w := &recordingTB{TB: t}
		func() {
			defer func() {
				if p := recover(); p != nil && p != (testStopped{}) {
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

// Each of these is a plausible bug of a store. The suite must detect it.
func TestLog_DetectsFaultyImplementations(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(s *Subject, m *memoryLog)
		by    string // the case that must fail
	}{
		"encodes records again": {func(s *Subject, m *memoryLog) {
			s.Log = changedLog{memoryLog: m, records: func(raw []byte) []byte {
				var v map[string]any
				if json.Unmarshal(raw, &v) != nil {
					return raw
				}
				again, _ := json.Marshal(v)
				return again
			}}
		}, "Append_MatchesReference"},
		"zero bytes cut off": {func(s *Subject, m *memoryLog) {
			s.Log = changedLog{memoryLog: m, records: func(raw []byte) []byte { return bytes.ReplaceAll(raw, []byte(`\u0000`), nil) }}
		}, "Append_MatchesReference"},
		"accounts that differ in case": {func(s *Subject, m *memoryLog) {
			inner := s.Append
			s.Append = func(ctx context.Context, account string, r audit.Record) error {
				return inner(ctx, strings.ToLower(account), r)
			}
		}, "I8_AccountsAreSeparate"},
		"forgets the last record": {func(s *Subject, m *memoryLog) {
			s.Log = changedLog{memoryLog: m, bounds: func(from, to int64) (int64, int64) {
				if to > 1 {
					to--
				}
				return from, to
			}}
		}, "Records_Ranges"},
		"appends without a lock": {func(s *Subject, m *memoryLog) {
			s.Append = func(ctx context.Context, account string, r audit.Record) error {
				if strings.HasSuffix(r.Location.Interrupt, "7") {
					return nil // lost to another writer
				}
				_, err := m.Append(ctx, account, r)
				return err
			}
		}, "I12_ConcurrentAppendsMakeOneChain"},
		"appends after cancel": {func(s *Subject, m *memoryLog) {
			s.Append = func(ctx context.Context, account string, r audit.Record) error {
				_, err := m.Append(context.WithoutCancel(ctx), account, r)
				return err
			}
		}, "Append_CancelledLeavesNothing"},
		"unknown hashes are zero": {func(s *Subject, m *memoryLog) { s.Log = zeroHashLog{m} }, "Hashes_UnknownIsNotFound"},
		"unsorted checkpoints":    {func(s *Subject, m *memoryLog) { s.Log = &unsortedLog{memoryLog: m} }, "Checkpoints_AreSortedAndUnique"},
		"repairs records on read": {func(s *Subject, m *memoryLog) {
			s.Log = changedLog{memoryLog: m, repair: true}
		}, "Tamper_DetectsChangedBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			failed := failedCases(t, func() Subject {
				s, m := newSubject()
				test.spoil(&s, m)
				return s
			})
			if !slices.Contains(failed, test.by) {
				t.Errorf("detected by %q; want %s among them", failed, test.by)
			}
		})
	}
	if failed := failedCases(t, func() Subject { s, _ := newSubject(); return s }); len(failed) != 0 {
		t.Errorf("the correct log fails %q", failed)
	}
}

// changedLog is a log that returns changed records.
type changedLog struct {
	*memoryLog
	records func([]byte) []byte
	bounds  func(from, to int64) (int64, int64)
	repair  bool
}

func (c changedLog) Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error] {
	if c.repair {
		return c.Memory.Records(ctx, account, from, to)
	}
	if c.bounds != nil {
		from, to = c.bounds(from, to)
	}
	return func(yield func([]byte, error) bool) {
		for raw, err := range c.memoryLog.Records(ctx, account, from, to) {
			if c.records != nil {
				raw = c.records(raw)
			}
			if !yield(raw, err) {
				return
			}
		}
	}
}

type zeroHashLog struct{ *memoryLog }

func (z zeroHashLog) Hashes(ctx context.Context, account string, indexes []int64) ([]audit.Hash, error) {
	hashes := make([]audit.Hash, len(indexes))
	for i, index := range indexes {
		if got, err := z.Memory.Hashes(ctx, account, []int64{index}); err == nil {
			hashes[i] = got[0]
		}
	}
	return hashes, nil
}

type unsortedLog struct {
	*memoryLog
	kept [][]byte
}

func (u *unsortedLog) AddCheckpoint(_ context.Context, _ string, c audit.Checkpoint) error {
	u.kept = append(u.kept, c.Note)
	return nil
}

func (u *unsortedLog) Checkpoints(context.Context, string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, c := range u.kept {
			if !yield(c, nil) {
				return
			}
		}
	}
}
