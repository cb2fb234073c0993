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

// A test process that has to end badly is told how in this variable.
const ending = "FERMATA_TESTSERVER_ENDING"

// CheckCleanup starts the test that calls it again, in processes that end badly after start has made a server, and wants the server to be gone after
// each of them, and its directory, unless that is "".
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

// runAndCrash runs a test in a process that ends badly, and returns the server that it has told of.
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
		t.Fatalf("the child ended well, or told nothing: %v, %d", err, pid)
	}
	return pid, dir
}

func wantGone(t *testing.T, pid int, dir string) {
	t.Helper()
	for deadline := time.Now().Add(StartTimeout); running(pid) || exists(dir); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the server runs: %t; its directory is there: %t", running(pid), exists(dir))
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

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return dir != "" && !errors.Is(err, fs.ErrNotExist)
}
