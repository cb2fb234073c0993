package pgtest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/testserver"
	"github.com/fermata-go/fermata/internal/testtier"
)

// Cluster is one PostgreSQL server with its data. New is enough for most tests.
type Cluster struct {
	dir      string
	bin      string
	owner    *owner
	durable  bool   // fsync is on
	prefix   string // of the names of databases and users, which no other test process uses
	password string // of the superuser postgres
	port     int    // chosen by the first start and kept, so that connection strings stay valid
	guard    *testserver.Guard
	env      []string // of the server, in addition to that of the test

	server *exec.Cmd
	exited chan struct{} // closed when server has ended
	killed bool          // and not started again

	users, databases atomic.Int64 // created so far

	mu       sync.Mutex
	used     []string    // databases whose tests have ended
	prepared []*prepared // those that are used without recreating them
}

// Start starts a server for this test, which may [Cluster.Kill] it. It writes to disk as in
// production (fsync is on), and ends with the test.
func Start(t testing.TB) *Cluster {
	t.Helper()
	return startFor(t, nil)
}

func startFor(t testing.TB, prepare func(*Cluster) error) *Cluster {
	t.Helper()
	testtier.Needs(t, "PostgreSQL")
	c, err := start(true, prepare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Kill ends the server's main process like kill -9, so it cannot write anything. Its children
// notice and exit.
func (c *Cluster) Kill(t testing.TB) {
	t.Helper()
	if err := c.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.exited
	c.killed = true
	if err := c.guard.Watch(0); err != nil {
		t.Fatal(err)
	}
}

// Restart starts the server again after Kill, on the same data and port, and waits until it has
// recovered.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	c.killed = false
	if err := c.run(); err != nil {
		t.Fatal(err)
	}
}

// start starts a server. prepare, if not nil, is called when its data directory exists.
func start(durable bool, prepare func(*Cluster) error) (_ *Cluster, err error) {
	c := &Cluster{durable: durable, prefix: newPrefix(), password: rand.Text()}
	if c.bin, err = find(); err != nil {
		return nil, err
	}
	if c.owner, err = findOwner(); err != nil {
		return nil, err
	}
	if c.dir, err = c.owner.mkdirTemp(); err != nil {
		return nil, fmt.Errorf("pgtest: %w", err)
	}
	// SIGQUIT ends the server and its children at once.
	if c.guard, err = testserver.NewGuard("QUIT", c.dir, c.owner.prepare); err != nil {
		return nil, errors.Join(fmt.Errorf("pgtest: %w", err), os.RemoveAll(c.dir))
	}
	if err = c.initdb(); err == nil && prepare != nil {
		err = prepare(c)
	}
	if err == nil {
		err = c.run()
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// stop ends the server and the guard, which removes the files. The server does not write out data.
func (c *Cluster) stop() error {
	if c.killed {
		// A killed server leaves its shared memory; the next server on the same data removes it.
		if err := c.run(); err != nil {
			return errors.Join(err, c.guard.Dismiss())
		}
	}
	if c.exited != nil {
		c.server.Process.Signal(syscall.SIGQUIT) // an error means that it has ended already
		select {
		case <-c.exited:
		case <-time.After(testserver.StartTimeout):
			c.server.Process.Kill()
			<-c.exited
		}
	}
	return errors.Join(c.guard.Watch(0), c.guard.Dismiss())
}

func (c *Cluster) initdb() error {
	secret := filepath.Join(c.dir, "password")
	if err := os.WriteFile(secret, []byte(c.password), 0o600); err != nil {
		return err
	}
	if err := c.owner.own(secret); err != nil {
		return err
	}
	var output bytes.Buffer
	// --no-sync applies to the files of initdb only. The server itself syncs.
	cmd := c.command("initdb", "-D", c.data(), "-U", "postgres", "-A", "scram-sha-256", "--pwfile", secret,
		"-E", "UTF8", "--locale", "C", "--no-sync")
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w", err)
	}
	if err := errors.Join(c.guard.Watch(cmd.Process.Pid), cmd.Wait(), c.guard.Watch(0)); err != nil {
		return fmt.Errorf("pgtest: initdb: %w\n%s", err, output.Bytes())
	}
	return os.Remove(secret)
}

// run starts the server and waits until it accepts connections. After a kill it must retry, because
// the children of a killed server need a moment to release the shared memory.
func (c *Cluster) run() error { return testserver.Run(&c.port, c.tryRun) }

func (c *Cluster) tryRun(deadline time.Time) error {
	fsync := "off"
	if c.durable {
		fsync = "on"
	}
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer log.Close()
	c.server = c.command("postgres", "-D", c.data(), "-p", strconv.Itoa(c.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync="+fsync, "-c", "shared_buffers=32MB", "-c", "max_connections=400",
		"-c", "log_min_messages=fatal", "-c", "log_min_error_statement=panic")
	c.server.Stdout, c.server.Stderr = log, log
	c.server.Env = append(c.server.Env, c.env...)
	if err := c.server.Start(); err != nil {
		return fmt.Errorf("pgtest: postgres: %w", err)
	}
	server, exited := c.server, make(chan struct{})
	c.exited = exited
	go func() {
		defer close(exited)
		server.Wait()
	}()
	if err := c.guard.Watch(c.server.Process.Pid); err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !c.ready() {
		select {
		case <-exited:
			return errors.Join(fmt.Errorf("pgtest: postgres ended: %s\n%s", server.ProcessState, c.logTail()), c.guard.Watch(0))
		case <-tick.C:
			if time.Now().After(deadline) {
				return fmt.Errorf("pgtest: postgres is not ready after %s\n%s", testserver.StartTimeout, c.logTail())
			}
		}
	}
	return nil
}

// ready checks the pid file like pg_ctl: the server writes its state to the last line.
func (c *Cluster) ready() bool {
	data, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	lines := strings.Split(string(data), "\n")
	return err == nil && len(lines) > 7 && strings.TrimSpace(lines[0]) == strconv.Itoa(c.server.Process.Pid) &&
		strings.TrimSpace(lines[7]) == "ready"
}

func (c *Cluster) logTail() []byte {
	data, err := os.ReadFile(filepath.Join(c.dir, "log"))
	if err != nil {
		return []byte(err.Error())
	}
	return data[max(0, len(data)-2000):]
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// command prepares a PostgreSQL program to run as the owner of the data, out of reach of the
// terminal's Ctrl-C. The guard decides when it ends.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") && !strings.HasPrefix(variable, "LC_") && !strings.HasPrefix(variable, "LANG") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	c.owner.prepare(cmd)
	return cmd
}
