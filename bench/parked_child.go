package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// childEnv makes this program, or its tests, an executor that follows orders on standard input. Its
// configuration also arrives there, because it may contain a password.
const childEnv = "FERMATA_BENCH_CHILD"

// childOrder is one line of the input, and childReply one of the output.
type childOrder struct {
	// The first order names the database, and says whether its data is encrypted.
	Database, Place, Text string
	Sealed                bool
	Lease                 time.Duration // 0 is the default
	// Serve requests a server with a maximum number of streams; see [benchServer].
	Serve int
	// Keys requests a number of API keys of an account.
	Account string
	Keys    int
	// Collect requests the memory after a garbage collection.
	Collect bool
	// Decide has the keys of runs to be decided sequentially.
	Decide []string
	Pause  time.Duration
	// Expire is how many requests of how many tenants expire during the order: runs are decided for
	// as long as that takes.
	Expire, Tenants int
}

type childReply struct {
	Resident  int64
	Heap      int64 // of Go, with stacks, after a garbage collection
	URL, Key  string
	Keys      []string
	Latencies []time.Duration
	// Swept is the time until all had expired, Resumed until their runs had resumed.
	Swept, Resumed time.Duration
	Error          string
}

// isChild reports whether this process is a child; then it has done its work.
func isChild() bool {
	if os.Getenv(childEnv) == "" {
		return false
	}
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	return true
}

func serve(ctx context.Context, in io.Reader, out io.Writer) error {
	orders, replies := json.NewDecoder(in), json.NewEncoder(out)
	var first childOrder
	if err := orders.Decode(&first); err != nil {
		return err
	}
	e, err := openChild(ctx, first)
	if err != nil {
		return err
	}
	defer e.close()
	web := &benchServer{executorSide: e}
	defer web.close()
	n := 0
	for {
		var order childOrder
		if err := orders.Decode(&order); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		reply, err := web.handle(ctx, order, &n)
		if err == nil {
			err = replies.Encode(reply)
		}
		if err != nil {
			return err
		}
	}
}

// handle executes an order. n counts the decisions.
func (web *benchServer) handle(ctx context.Context, order childOrder, n *int) (reply childReply, err error) {
	if order.Collect {
		runtime.GC()
		debug.FreeOSMemory()
		reply.Heap = heap()
	}
	if order.Serve > 0 {
		if reply.URL, reply.Key, err = web.open(ctx, order.Serve); err != nil {
			return reply, err
		}
	}
	if reply.Keys, err = web.keys(ctx, order.Account, order.Keys); err != nil {
		return reply, err
	}
	if order.Expire > 0 {
		if err := decideWhileExpiring(ctx, web.executorSide, order, &reply); err != nil {
			reply.Error = err.Error()
		}
		order.Decide = nil
	}
	for _, key := range order.Decide {
		*n++
		latency, err := decideOne(ctx, web.executorSide, key, *n)
		if err != nil {
			reply.Error = fmt.Sprintf("%s: %v", key, err)
			break
		}
		reply.Latencies = append(reply.Latencies, latency)
		time.Sleep(order.Pause)
	}
	reply.Resident, err = resident()
	return reply, err
}

func openChild(ctx context.Context, o childOrder) (*executorSide, error) {
	var st closableStore
	var err error
	if o.Database == onPostgres {
		st, err = postgres.Open(ctx, o.Place, postgres.Config{MaxConns: poolSize})
	} else {
		st, err = sqlite.Open(o.Place)
	}
	if err != nil {
		return nil, err
	}
	var sealer executor.Sealer = plainSealer{}
	if o.Sealed {
		if sealer, err = newSealer(); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	e, err := newExecutorSide(executor.Config{Store: st, Sealer: sealer, Lease: o.Lease}, reviewWorkload(o.Text), st.Close)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return e, nil
}

// heap returns the bytes in use by Go's heap and stacks.
func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// decideOne decides a run, and starts another one instead, which is not measured.
func decideOne(ctx context.Context, e *executorSide, key string, n int) (time.Duration, error) {
	started := time.Now()
	if err := e.decide(ctx, key); err != nil {
		return 0, err
	}
	latency := time.Since(started)
	return latency, e.start(ctx, "new-"+strconv.Itoa(n))
}

// resident returns the resident memory of this process in bytes.
func resident() (int64, error) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes * kib, err
		}
	}
	return 0, errors.New("the system does not report the memory")
}

// child is the parent's side of a child process.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr *bytes.Buffer
}

func newChild(ctx context.Context, first childOrder) (_ *child, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.CommandContext(ctx, self), stderr: new(bytes.Buffer)}
	c.cmd.Env, c.cmd.Stderr = append(os.Environ(), childEnv+"=1"), c.stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if err := json.NewEncoder(c.in).Encode(first); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *child) ask(order childOrder) (reply childReply, err error) {
	if err := json.NewEncoder(c.in).Encode(order); err != nil {
		return reply, errors.Join(err, c.close())
	}
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return reply, errors.Join(err, c.close())
	}
	if err := json.Unmarshal(line, &reply); err != nil {
		return reply, err
	}
	if reply.Error != "" {
		return reply, errors.New(reply.Error)
	}
	return reply, nil
}

func (c *child) close() error {
	if c.cmd.ProcessState != nil {
		return nil
	}
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("child process: %w\n%s", err, c.stderr)
	}
	return nil
}
