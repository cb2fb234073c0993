package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// A test that needs a second process starts this test binary again with these variables set.
const (
	childTask = "FERMATA_SQLITE_CHILD"
	childPath = "FERMATA_SQLITE_PATH"
)

func TestMain(m *testing.M) {
	task := os.Getenv(childTask)
	if task == "" {
		os.Exit(m.Run())
	}
	if err := runChild(task, os.Getenv(childPath)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childTasks are the tasks of a child process.
var childTasks = map[string]func(s *Store, path string) error{
	"count": func(s *Store, _ string) error {
		fmt.Println("ready")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		return count(s, increments)
	},
	"write": func(s *Store, _ string) error { return writeForever(s, os.Stdout) },
	"work":  func(s *Store, _ string) error { return storetest.WorkForever(s, os.Stdout) },
}

func runChild(task, path string) error {
	do := childTasks[task]
	if do == nil {
		return fmt.Errorf("unknown task %q", task)
	}
	s, err := Open(path)
	if err != nil {
		return err
	}
	defer s.Close()
	return do(s, path)
}

type child struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Scanner
}

func startChild(t *testing.T, task, path string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), childTask+"="+task, childPath+"="+path)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &child{cmd: cmd, stdin: stdin, stdout: bufio.NewScanner(stdout)}
}

const increments = 100

// count increments the number in the checkpoint n times: load, save, and retry after a concurrent
// save.
func count(s *Store, n int) error {
	ctx := context.Background()
	for n > 0 {
		checkpoint, err := s.Load(ctx, demo)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		number, _ := strconv.Atoi(string(checkpoint.Parts["run"]))
		_, err = s.Save(ctx, demo, checkpoint.Version, putRun(strconv.Itoa(number+1)))
		switch {
		case err == nil:
			n--
		case !errors.Is(err, store.ErrStale):
			return err
		}
	}
	return nil
}

func TestProcesses_TwoCountersLoseNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	// The child creates the file while this process opens it.
	other := startChild(t, "count", path)
	s := mustOpen(t, path)
	if !other.stdout.Scan() {
		t.Fatalf("the other process is not ready: %v", other.cmd.Wait())
	}
	if _, err := io.WriteString(other.stdin, "go\n"); err != nil {
		t.Fatal(err)
	}
	if err := count(s, increments); err != nil {
		t.Error(err)
	}
	if err := other.cmd.Wait(); err != nil {
		t.Fatalf("the other process: %v", err)
	}
	wantRun(t, s, 2*increments, strconv.Itoa(2*increments))
}

// writeForever saves checkpoints whose parts name their version, and prints each acknowledged
// version. It ends when its output is closed.
func writeForever(s *Store, acknowledged io.Writer) error {
	checkpoint, err := s.Load(context.Background(), demo)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	version := checkpoint.Version
	for {
		if version, err = s.Save(context.Background(), demo, version, generation(version+1)); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(acknowledged, version); err != nil {
			return err
		}
	}
}

func generation(version int64) store.Delta {
	text := strconv.FormatInt(version, 10)
	var delta store.Delta
	for i := range 5 {
		delta.Put = append(delta.Put, store.Part{Name: fmt.Sprint("part ", i), Data: []byte(text)})
	}
	// One part per version is added and removed, so that a partial save is detected.
	delta.Put = append(delta.Put, store.Part{Name: "only " + text, Data: []byte(text)})
	delta.Delete = []string{"only " + strconv.FormatInt(version-1, 10)}
	return delta
}

func TestProcesses_KilledWriterLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	for round := range 5 {
		writer := startChild(t, "write", path)
		acknowledged := int64(0)
		for lines := 0; writer.stdout.Scan(); lines++ {
			version, err := strconv.ParseInt(writer.stdout.Text(), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			acknowledged = version
			if lines == 20+7*round {
				// The child writes until the signal arrives; this loop reads what it still
				// acknowledges.
				if err := writer.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := writer.cmd.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}

		s := mustOpen(t, path)
		checkpoint, err := s.Load(t.Context(), demo)
		if err != nil {
			t.Fatal(err)
		}
		if checkpoint.Version != acknowledged && checkpoint.Version != acknowledged+1 {
			t.Fatalf("round %d: version %d is stored, %d was acknowledged", round, checkpoint.Version, acknowledged)
		}
		want := strconv.FormatInt(checkpoint.Version, 10)
		for name, data := range checkpoint.Parts {
			if string(data) != want {
				t.Errorf("round %d: %q is of version %s, the checkpoint of %s", round, name, data, want)
			}
		}
		if len(checkpoint.Parts) != 6 {
			t.Errorf("round %d: %d parts; want 6", round, len(checkpoint.Parts))
		}
		if round%2 == 0 { // the next writer finds the file open or closed
			s.Close()
		}
	}
}
