// Package redistest starts a real Redis server for tests and stops it however they end.
//
//	func TestSomething(t *testing.T) {
//		server := redistest.Start(t) // empty
//		options, err := redis.ParseURL(server.URL())
//		...
//		server.Kill(t)    // like kill -9
//		server.Restart(t) // at the same address, empty
//	}
//
// A server listens on a free port of 127.0.0.1, requires a password and writes no file. It is
// independent of any server already running on the machine. It starts within milliseconds, so every
// test can have its own.
//
// As in internal/pgtest, a guard holds the other end of a pipe from the test process and stops the
// server when the pipe closes. A panic, a timeout and kill -9 therefore leave nothing behind.
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
	port     int // chosen by the first start and kept, so that URLs stay valid
	guard    *testserver.Guard

	process *exec.Cmd
	exited  chan struct{} // closed when process has ended
}

// Start starts an empty server for this test. It ends with the test. If there is no Redis on this
// machine, the test fails, because an untested store would look tested.
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

// URL returns the URL of the server, including the password.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.password), Host: s.Addr(), Path: "/0"}
	return u.String()
}

// Addr returns the server's host and port.
func (s *Server) Addr() string { return fmt.Sprint("127.0.0.1:", s.port) }

// Kill ends the server like kill -9. Its connections are reset and its data is lost.
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
	// Args[0] tells the program that it is the server.
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

// config is passed through standard input, where other users cannot see the password.
func (s *Server) config() string {
	return strings.Join([]string{
		"bind 127.0.0.1", fmt.Sprint("port ", s.port), "requirepass " + s.password,
		`save ""`, "appendonly no", "daemonize no",
	}, "\n")
}

// tail holds the last lines of output. It is complete once the server has ended.
type tail []string

// read closes ready when the server reports that it is ready.
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
