package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
)

// pgServer is a PostgreSQL server started by this program, as in the tests of the store. It is
// durable, as in production.
type pgServer struct {
	host    *testHost
	cluster *pgtest.Cluster
	pid     int // of its main process
}

func startServer(ctx context.Context) (*pgServer, error) {
	s := &pgServer{host: &testHost{}}
	err := s.host.try(func() { s.cluster = pgtest.Start(s.host) })
	if err == nil {
		s.pid, err = s.mainProcess(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// database creates an empty database and returns its connection string.
func (s *pgServer) database() (connString string, err error) {
	err = s.host.try(func() { connString = s.cluster.Database(s.host) })
	return connString, err
}

// superuser connects to a database of this server as superuser.
func (s *pgServer) superuser(ctx context.Context, connString string) (conn *pgx.Conn, err error) {
	var all string
	if err := s.host.try(func() { all = s.cluster.Superuser(s.host, connString) }); err != nil {
		return nil, err
	}
	return pgx.Connect(ctx, all)
}

func (s *pgServer) close() error { return s.host.cleanup() }

// mainProcess finds the parent of a process that serves a connection.
func (s *pgServer) mainProcess(ctx context.Context) (int, error) {
	connString, err := s.database()
	if err != nil {
		return 0, err
	}
	conn, err := pgx.Connect(ctx, connString)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	var pid int
	if err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return 0, err
	}
	stat, err := readStat(pid)
	return stat.parent, err
}

// cpuTime returns the CPU time of all processes of the server so far. That of an ended child counts
// for its parent.
func (s *pgServer) cpuTime() (time.Duration, error) {
	if s == nil {
		return 0, nil
	}
	parent, err := readStat(s.pid)
	if err != nil {
		return 0, err
	}
	sum := parent.own + parent.children
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if stat, err := readStat(pid); err == nil && stat.parent == s.pid { // or it has ended since
			sum += stat.own
		}
	}
	return sum, nil
}

// stat is the process status of the kernel.
type stat struct {
	parent        int
	own, children time.Duration // CPU time
}

// tick is the unit of the kernel's times.
const tick = 10 * time.Millisecond

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	// The program name, in parentheses, may contain anything.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("no fields of process %d in %q", pid, data)
	}
	var numbers [5]int64
	for i, field := range []string{fields[1], fields[11], fields[12], fields[13], fields[14]} {
		if numbers[i], err = strconv.ParseInt(field, 10, 64); err != nil {
			return stat{}, err
		}
	}
	return stat{
		parent: int(numbers[0]), own: tick * time.Duration(numbers[1]+numbers[2]), children: tick * time.Duration(numbers[3]+numbers[4]),
	}, nil
}

// testHost implements the part of testing.TB that package pgtest uses, outside of a test.
type testHost struct {
	testing.TB
	cleanups []func()
	errs     []error
}

// fatalError is what try recovers.
type fatalError struct{ error }

// try calls a function that may call Fatal.
func (h *testHost) try(do func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case fatalError:
			err = v.error
		default:
			panic(v)
		}
	}()
	do()
	return nil
}

// cleanup runs the cleanup functions.
func (h *testHost) cleanup() error {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		cleanup := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		cleanup()
	}
	return errors.Join(h.errs...)
}

func (h *testHost) Helper()                   {}
func (h *testHost) Cleanup(f func())          { h.cleanups = append(h.cleanups, f) }
func (h *testHost) Error(args ...any)         { h.errs = append(h.errs, errors.New(fmt.Sprint(args...))) }
func (h *testHost) Fatal(args ...any)         { panic(fatalError{errors.New(fmt.Sprint(args...))}) }
func (h *testHost) Fatalf(f string, a ...any) { panic(fatalError{fmt.Errorf(f, a...)}) }
