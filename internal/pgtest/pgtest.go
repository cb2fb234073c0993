// Package pgtest starts a real PostgreSQL server for tests and stops it however they end.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
//
//	func TestSomething(t *testing.T) {
//		pool, err := pgxpool.New(t.Context(), pgtest.New(t)) // an empty database
//		...
//	}
//
// All tests of a package share one server, and all packages of make test (FERMATA_TEST_POSTGRES,
// internal/pgtest/pgserver). That one does not wait for the disk (fsync is off). [Start] starts
// another server for a test that kills it, which writes to disk as in production. A server listens
// on a free port of 127.0.0.1 and requires a password. It is independent of any server already
// running on the machine.
//
// Its files are in a new directory. A guard, a small shell process, holds the other end of a pipe
// from the test process:
//
//	test process ──starts──► postgres -D dir
//	     │                      ▲
//	     └───pipe──► guard ─────┘ when the pipe closes: stops postgres, removes dir
//
// A panic, a timeout, Ctrl-C and kill -9 therefore leave nothing behind, like success. Main waits
// for the guard.
//
// PostgreSQL refuses to run as root; root starts it as the user postgres.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
)

// variable is the environment variable with the address of a server that several test processes
// share, as [Serve] reports it.
const variable = "FERMATA_TEST_POSTGRES"

// Serve starts a server that test processes share, reports its address, which they expect in
// FERMATA_TEST_POSTGRES, and stops it when ctx ends.
func Serve(ctx context.Context, ready func(address string) error) error {
	c, err := start(false, nil)
	if err != nil {
		return err
	}
	if err = ready(c.url("postgres", c.password, "postgres")); err == nil {
		<-ctx.Done()
	}
	return errors.Join(err, c.stop())
}

// attach returns the server of another process.
func attach(address string) (*Cluster, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("pgtest: %s: %w", variable, err)
	}
	c := &Cluster{prefix: newPrefix()}
	c.password, _ = u.User.Password()
	if c.port, err = strconv.Atoi(u.Port()); err != nil {
		return nil, fmt.Errorf("pgtest: %s has no port", variable)
	}
	c.bin, err = find()
	return c, err
}

// newPrefix returns the beginning of names that no other test process uses.
func newPrefix() string { return "p" + strings.ToLower(rand.Text()[:12]) + "_" }

// shared is the server that New uses. It is started by the first test that needs it.
var shared struct {
	sync.Mutex
	started bool
	cluster *Cluster
	err     error
}

// Main runs the tests of a package and returns the exit code. When it returns, the shared server
// has ended.
func Main(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster == nil || shared.cluster.server == nil {
		return code
	}
	if err := shared.cluster.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// New returns the connection string of an empty database, owned by a user without other privileges.
// It belongs to this test until the test ends. If there is no PostgreSQL on this machine, the test
// fails, because an untested store would look tested.
// With FERMATA_TEST=fast it is skipped.
func New(t testing.TB) string {
	t.Helper()
	return sharedCluster(t).Database(t)
}

// Superuser returns the connection string of the superuser for a database on the shared server.
func Superuser(t testing.TB, connString string) string {
	t.Helper()
	return sharedCluster(t).Superuser(t, connString)
}

func sharedCluster(t testing.TB) *Cluster {
	t.Helper()
	testtier.Needs(t, "PostgreSQL")
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.started = true
		if address := os.Getenv(variable); address != "" {
			shared.cluster, shared.err = attach(address)
		} else {
			shared.cluster, shared.err = start(false, nil)
		}
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.cluster
}
