//go:build unix

package testserver

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ending is the environment variable that tells a test process how to crash.
const ending = "FERMATA_TESTSERVER_ENDING"

// CheckCleanup runs the calling test again in processes that crash after start has created a
// server. It checks that the server and its directory, unless that is "", are gone afterwards.
func CheckCleanup(t *testing.T, start func() (pid int, dir string)) {
	if how := os.Getenv(ending); how != "" {
		pid, dir := start()
		fmt.Printf("server %d in %q\n", pid, dir)
		if how == "panic" {
			panic("as tests do")
		}
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	for _, how := range []string{"panic", "kill"} {
		test := t.Name()
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			pid, dir := runAndCrash(t, test, how)
			wantGone(t, pid, dir)
		})
	}
}

// runAndCrash runs a test in a process that crashes, and returns the server that it reported.
func runAndCrash(t *testing.T, test, how string) (pid int, dir string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe, "-test.run", "^"+test+"$")
	child.Env = append(os.Environ(), ending+"="+how)
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		fmt.Sscanf(lines.Text(), "server %d in %q", &pid, &dir)
	}
	if err := child.Wait(); err == nil || pid == 0 {
		t.Fatalf("the child did not crash or reported nothing: %v, %d", err, pid)
	}
	return pid, dir
}

func wantGone(t *testing.T, pid int, dir string) {
	t.Helper()
	for deadline := time.Now().Add(StartTimeout); running(pid) || exists(dir); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("server running: %t; directory exists: %t", running(pid), exists(dir))
		}
	}
}

// running reports whether a process exists and is not a zombie.
func running(pid int) bool {
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
		return false
	}
	return syscall.Kill(pid, 0) == nil
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return dir != "" && !errors.Is(err, fs.ErrNotExist)
}
