//go:build unix

package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fermata-go/fermata/internal/testserver"
)

// A test that needs a test process which ends badly starts this binary again with this variable set.
const ending = "FERMATA_REDISTEST_ENDING"

func connect(t *testing.T, rawURL string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	return client
}

func TestStart_ServersAreSeparateAndWantThePassword(t *testing.T) {
	first, second := Start(t), Start(t)
	if err := connect(t, first.URL()).Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, second.URL()).Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("the key of another server: %v", err)
	}
	wrong := strings.Replace(first.URL(), "@127", "x@127", 1)
	if err := connect(t, wrong).Ping(t.Context()).Err(); err == nil {
		t.Error("a wrong password was taken")
	}
}

func TestRestart_SameAddressAndEmpty(t *testing.T) {
	s := Start(t)
	before, client := s.URL(), connect(t, s.URL())
	if err := client.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill(t)
	if client.Ping(t.Context()).Err() == nil {
		t.Error("a killed server answers")
	}
	s.Restart(t)
	if s.URL() != before {
		t.Errorf("%s has become %s", before, s.URL())
	}
	if err := connect(t, before).Get(t.Context(), "key").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("Get after a restart: %v; want nothing", err)
	}
}

func TestFind_MissingNamesTheCure(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if program, err := find(); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "`make test`") {
		t.Errorf("find = %q, %v; want an error that names make test", program, err)
	}
}

// However the test process ends, no server of it stays.
func TestGuard_CleansUpAfterTheTestProcess(t *testing.T) {
	if how := os.Getenv(ending); how != "" {
		end(t, how)
		return
	}
	for _, how := range []string{"panic", "kill"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			child := exec.Command(exe, "-test.run", "^"+t.Name()[:strings.Index(t.Name(), "/")]+"$")
			child.Env = append(os.Environ(), ending+"="+how)
			stdout, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			for lines := bufio.NewScanner(stdout); lines.Scan(); {
				fmt.Sscanf(lines.Text(), "server %d", &pid)
			}
			if err := child.Wait(); err == nil || pid == 0 {
				t.Fatalf("the child ended well, or told nothing: %v, %d", err, pid)
			}
			wantGone(t, pid)
		})
	}
}

// end runs in the child.
func end(t *testing.T, how string) {
	fmt.Printf("server %d\n", Start(t).process.Process.Pid)
	switch how {
	case "panic":
		panic("as tests do")
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
}

func wantGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(testserver.Patience); running(pid); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("the server still runs")
		}
	}
}

// running says whether a process is there and does something: an entry that its new parent has not collected does nothing.
func running(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}
