// Package redistest gives tests a real Redis server of their own, and takes it away again however they end.
//
//	func TestSomething(t *testing.T) {
//		server := redistest.Start(t) // empty
//		client, err := redis.NewClient(server.URL())
//		...
//		server.Kill(t)    // as kill -9 does
//		server.Restart(t) // at the same address, and empty again
//	}
//
// A server listens on a free port of 127.0.0.1, wants a password and writes no file. It has nothing to do with a server that may
// run on the machine already. It starts within milliseconds, so that every test can have its own.
//
// As for PostgreSQL (internal/pgtest), a guard holds the other end of a pipe from the test process and ends the server when
// that closes, so that a panic, a timeout and kill -9 leave as little behind as success does.
package redistest

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/testserver"
	"github.com/fermata-go/fermata/internal/testtier"
)

// Server is one Redis server.
type Server struct {
	program  string
	password string
	port     int // chosen by the first start and kept, so that URLs stay good
	guard    *testserver.Guard

	process *exec.Cmd
	exited  chan struct{} // closed when process has ended
}

// Start makes an empty server for this test alone. It is gone when the test has ended. If there is no Redis on this machine the test
// fails: what was not tested must not look as if it were.
func Start(t testing.TB) *Server {
	t.Helper()
	testtier.Needs(t, "Redis")
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// URL says how to reach the server, password included.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: s.Addr(), Path: "/0"}
	return u.String()
}

// Addr is the server's host and port.
func (s *Server) Addr() string { return fmt.Sprint("127.0.0.1:", s.port) }

// Kill ends the server as kill -9 does. Its connections are reset, and what it held is gone.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.kill()
	if err := s.guard.Watch(0); err != nil {
		t.Fatal(err)
	}
}

// Restart starts the server again after Kill, at the same address.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

func start() (*Server, error) {
	program, err := find()
	if err != nil {
		return nil, err
	}
	guard, err := testserver.NewGuard("KILL", "", nil)
	if err != nil {
		return nil, err
	}
	s := &Server{program: program, password: rand.Text(), guard: guard}
	if err := s.run(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *Server) stop() error {
	s.kill()
	return errors.Join(s.guard.Watch(0), s.guard.Dismiss())
}

func (s *Server) kill() {
	if s.process != nil {
		s.process.Process.Kill() // an error means that it has ended already
		<-s.exited
	}
}

// run starts the server and waits until it accepts connections.
func (s *Server) run() error { return testserver.Run(&s.port, s.tryRun) }

func (s *Server) tryRun(deadline time.Time) error {
	// Args[0] is what the program decides by whether it is the server.
	process := &exec.Cmd{Path: s.program, Args: []string{"redis-server", "-"}, Dir: "/"}
	process.Stdin = strings.NewReader(s.config())
	output, err := process.StdoutPipe()
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	process.Stderr = process.Stdout
	if err := process.Start(); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	ready, exited, log := make(chan struct{}), make(chan struct{}), new(tail)
	s.process, s.exited = process, exited
	go func() {
		defer close(exited)
		log.read(output, ready)
		process.Wait()
	}()
	if err := s.guard.Watch(process.Process.Pid); err != nil {
		return err
	}
	select {
	case <-ready:
		return nil
	case <-exited:
		return errors.Join(fmt.Errorf("redistest: the server ended: %s\n%s", process.ProcessState, log), s.guard.Watch(0))
	case <-time.After(time.Until(deadline)):
		s.kill()
		return errors.Join(fmt.Errorf("redistest: the server is not ready after %s\n%s", testserver.StartTimeout, log), s.guard.Watch(0))
	}
}

// config comes in through the input, where no other user of the machine sees the password.
func (s *Server) config() string {
	return strings.Join([]string{
		"bind 127.0.0.1", fmt.Sprint("port ", s.port), "requirepass " + s.password,
		`save ""`, "appendonly no", "daemonize no",
	}, "\n")
}

// tail is the end of what a server has said. It is complete once the server has ended.
type tail []string

// read closes ready when the server says that it is.
func (l *tail) read(output io.Reader, ready chan<- struct{}) {
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if ready != nil && strings.Contains(lines.Text(), "Ready to accept connections") {
			close(ready)
			ready = nil
		}
		*l = append(*l, lines.Text())
		*l = (*l)[max(0, len(*l)-20):]
	}
}

func (l *tail) String() string { return strings.Join(*l, "\n") }
