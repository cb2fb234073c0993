package executor_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider/inproc"
)

// crashDB is the environment variable with the database of a process that executes a run which ends
// the process.
const crashDB = "FERMATA_TEST_CRASH_DB"

// A run that ends its process is parked after a few processes. Runs of other accounts that these
// processes executed finish.
func TestI17_RunThatEndsItsProcessIsParkedAlone(t *testing.T) {
	if path := os.Getenv(crashDB); path != "" {
		executeCrashing(t, path)
		return
	}
	t.Parallel()
	path := filepath.Join(t.TempDir(), "fermata.db")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	crashes := 0
	for {
		cmd := exec.CommandContext(t.Context(), exe, "-test.run", "^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), crashDB+"="+path)
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		exit, ended := errors.AsType[*exec.ExitError](err)
		if crashes++; !ended || exit.ExitCode() != 7 || crashes > 8 {
			t.Fatalf("process %d: %v\n%s", crashes, err, out)
		}
	}
	t.Logf("%d processes ended", crashes)
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := executorOf(t, s, crashingRuns(t), nil)
	view, err := e.GetRun(t.Context(), "evil", "exit")
	if err != nil || view.Status != store.StatusParked || view.Problem == nil || view.Problem.Code != "crashed" || !strings.Contains(view.Problem.Message, "executed nothing else") {
		t.Errorf("the run is %s: %+v, %v", view.Status, view.Problem, err)
	}
	for _, key := range healthyKeys {
		if view, err := e.GetRun(t.Context(), "acme", key); err != nil || view.Status != store.StatusCompleted {
			t.Errorf("%s is %s, %v", key, view.Status, err)
		}
	}
}

var healthyKeys = []string{"a", "b", "c"}

// crashingRuns has runs that end their process, and runs that only take some time.
func crashingRuns(t *testing.T) *inproc.Provider {
	return single(t, "work", inproc.FlowConfig[order]{}, func(_ context.Context, o order) (order, error) {
		if o.Table == "exit" {
			time.Sleep(50 * time.Millisecond)
			os.Exit(7)
		}
		time.Sleep(400 * time.Millisecond)
		return o, nil
	}).(*inproc.Provider)
}

// executeCrashing is one of the processes. It starts the runs, unless another process has, and
// returns when all have come to something.
func executeCrashing(t *testing.T, path string) {
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	e := executorOf(t, s, crashingRuns(t), func(c *executor.Config) { c.Lease, c.Workers, c.MaxAttempts = 300*time.Millisecond, 8, 5 })
	e.StartWorkers()
	for _, key := range healthyKeys {
		_, _ = e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:work", Input: []byte(`{"table":"x"}`), Wait: -1})
	}
	_, _ = e.Run(t.Context(), executor.RunRequest{Account: "evil", StateKey: "exit", Graph: "inproc:work", Input: []byte(`{"table":"exit"}`), Wait: -1})
	for {
		open := 0
		for account, keys := range map[string][]string{"acme": healthyKeys, "evil": {"exit"}} {
			for _, key := range keys {
				run, err := s.Get(t.Context(), account, key)
				if err != nil {
					t.Fatal(err)
				}
				if run.Status == store.StatusReady || run.Status == store.StatusRunning {
					open++
				}
			}
		}
		if open == 0 {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
