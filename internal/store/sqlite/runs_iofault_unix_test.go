//go:build unix

package sqlite

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
)

func init() { childTasks["fault"] = failAndRepeat }

// failAndRepeat makes every call with a limited file size that grows until the call succeeds. The
// limit applies to the whole process, hence a child.
func failAndRepeat(s *Store, path string) error {
	signal.Ignore(syscall.SIGXFSZ) // so that the write fails
	for _, r := range repeatables {
		failed := 0
		for room := int64(0); ; room += 1500 { // within a page, and within its header
			says, err := withFileLimit(path, room, func() (string, error) { return r.result(context.Background(), s) })
			if err == nil {
				if says != r.firstResult {
					return fmt.Errorf("%s says %q after %d failures; want %q", r.name, says, failed, r.firstResult)
				}
				break
			}
			failed++
		}
		r.firstResult = r.repeatResult
		if err := r.check(context.Background(), s); err != nil {
			return err
		}
		fmt.Println(r.name, failed)
	}
	return nil
}

// withFileLimit makes a call while the WAL can grow only by a number of bytes.
func withFileLimit(path string, room int64, call func() (string, error)) (string, error) {
	log, err := os.Stat(path + "-wal")
	if err != nil {
		return "", err
	}
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return "", err
	}
	full := limit
	full.Cur = uint64(log.Size() + room)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &full); err != nil {
		return "", err
	}
	says, err := call()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	return says, err
}

func TestUnknownOutcome_RepeatAfterFailedWriteIsSafe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	c := startChild(t, "fault", path)
	for _, r := range repeatables {
		var failed int
		if !c.stdout.Scan() {
			break
		}
		if _, err := fmt.Sscanf(c.stdout.Text(), r.name+" %d", &failed); err != nil || failed < 2 {
			t.Errorf("%q, %v: too few failures", c.stdout.Text(), err)
		}
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	var result string
	if err := s.readers.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&result); err != nil || result != "ok" {
		t.Error(result, err)
	}
}
