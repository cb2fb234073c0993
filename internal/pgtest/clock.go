package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/testtier"
)

// ClockCluster is a server whose clock can be set, like the clock of a badly maintained machine.
type ClockCluster struct{ *Cluster }

// StartWithClock starts a server like [Start]. Its clock is correct until [ClockCluster.Jump] is
// called. Its processes get their time from libfaketime.
func StartWithClock(t testing.TB) *ClockCluster {
	t.Helper()
	testtier.Needs(t, "PostgreSQL and libfaketime")
	library, err := findFakeTime()
	if err != nil {
		t.Fatal(err)
	}
	c := &ClockCluster{}
	c.Cluster = startFor(t, func(cluster *Cluster) error {
		c.Cluster = cluster
		cluster.env = []string{
			"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + c.file(), "FAKETIME_NO_CACHE=1",
			// the monotonic clock does not jump
			"FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1",
		}
		return c.set(0)
	})
	return c
}

// Jump sets the clock of the server ahead of, or behind, the clock of the machine.
func (c *ClockCluster) Jump(t testing.TB, ahead time.Duration) {
	t.Helper()
	if err := c.set(ahead); err != nil {
		t.Fatal(err)
	}
}

func (c *ClockCluster) file() string { return filepath.Join(c.dir, "clock") }

func (c *ClockCluster) set(ahead time.Duration) error {
	next := c.file() + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+d\n", int64(ahead.Seconds())), 0o644); err != nil {
		return err
	}
	// readers must not see half of it
	return errors.Join(os.Chmod(next, 0o644), os.Rename(next, c.file()))
}

func findFakeTime() (string, error) {
	for _, pattern := range []string{"/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib/faketime/libfaketime.so.1", "/usr/local/lib/faketime/libfaketime.so.1"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			return found[0], nil
		}
	}
	return "", errors.New("pgtest: libfaketime is missing: install faketime (apt) or run make test")
}
