package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// binary is the program, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "dataops")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "dataops.exe")
		if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// process runs the program once and returns its output.
func process(t *testing.T, dir string, args ...string) (said string, err error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, append([]string{"-data", dir}, args...)...).CombinedOutput()
	return string(out), err
}

func TestProgram_EachMoveIsAProcessOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	for _, move := range []struct {
		args []string
		want []string
		not  string
	}{
		{nil, []string{"holds before transform_destructive", "customer = 42"}, "ran:"},
		{nil, []string{"holds before transform_destructive"}, "ran:"},
		{[]string{"-answer", "return", "-by", "ann", "-reason", "keep the rest"}, []string{"archived = yes AND customer = 42", "returned by ann: keep the rest"}, "ran:"},
		{
			[]string{"-answer", "grant", "-by", "bob", "-where", "customer=42,archived=no"},
			[]string{"ran: DELETE FROM orders WHERE archived = no AND customer = 42\n", "deleted 1 orders", "granted by bob"}, "holds",
		},
		{nil, []string{"is finished", "granted by bob"}, "ran:"},
	} {
		said, err := process(t, dir, move.args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", move.args, err, said)
		}
		for _, want := range move.want {
			if !strings.Contains(said, want) {
				t.Errorf("%v: lacks %q:\n%s", move.args, want, said)
			}
		}
		if strings.Contains(said, move.not) {
			t.Errorf("%v: has %q:\n%s", move.args, move.not, said)
		}
	}
}

func TestProgram_DeniedRunsNothing(t *testing.T) {
	dir := t.TempDir()
	if said, err := process(t, dir, "-request", "export orders to us-east"); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	said, err := process(t, dir, "-answer", "deny", "-by", "ann", "-reason", "not to this region")
	if err != nil || !strings.Contains(said, "denied by ann: not to this region") || strings.Contains(said, "ran:") {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestProgram_InvalidAnswerChangesNothing(t *testing.T) {
	dir := t.TempDir()
	if said, err := process(t, dir, "-answer", "grant", "-by", "ann"); err == nil || !strings.Contains(said, errNothingHeld.Error()) {
		t.Errorf("before the run: %v\n%s", err, said)
	}
	if said, err := process(t, dir); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, args := range [][]string{
		{"-answer", "grant"}, {"-answer", "deny", "-by", "ann"}, {"-answer", "yes", "-by", "ann"}, {"-answer", "grant", "-by", "ann", "-where", "everything"},
	} {
		if said, err := process(t, dir, args...); err == nil || strings.Contains(said, "ran:") {
			t.Errorf("%v: %v\n%s", args, err, said)
		}
	}
	if said, err := process(t, dir); err != nil || !strings.Contains(said, "holds before transform_destructive") {
		t.Errorf("afterwards: %v\n%s", err, said)
	}
}
