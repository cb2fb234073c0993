package endpoint

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// A cursor is accepted only if the server could have created it.
func FuzzCursors(f *testing.F) {
	page, err := Paged([]int{1, 2}, 1, func(n int) int { return n }, func(int) any { return store.RunPosition{Created: time.Unix(1, 0).UTC(), ID: "run_1"} })
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{page.Body.Next, "", "x", "e30", "eyJJRCI6MX0", "eyJpZCI6ImEifQ", "bnVsbA", strings.Repeat("W1tb", 100), "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		var run store.RunPosition
		var asked struct {
			ID   string
			Back bool
		}
		for _, err := range []error{ReadCursor(cursor, &run), ReadCursor(cursor, &asked)} {
			if p, ok := errors.AsType[*problems.Problem](err); err != nil && (!ok || p.Code != "bad_request" || strings.Contains(p.Detail, cursor) && len(cursor) > 10) {
				t.Fatalf("%q: %v", cursor, err)
			}
		}
	})
}

// No header makes a caller wait longer than allowed.
func FuzzPrefer(f *testing.F) {
	for _, seed := range []string{"", "respond-async", "wait=10", `wait="60"`, "wait=61", "wait=-1", "wait=9223372036854775808", "wait=1, wait=2", ";;,,="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if wait, err := Prefer(header); err == nil && (wait < -1 || wait > maxWaitSeconds*time.Second) {
			t.Fatalf("%q waits %v", header, wait)
		}
	})
}
