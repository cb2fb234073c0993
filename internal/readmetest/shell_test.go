//go:build unix

package readmetest

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// shell is somebody at a terminal: where they are, what they have exported, and a clean copy of the tree.
type shell struct {
	home string
	tree string // the copy
	own  string // a module of their own
	env  []string

	quit func() // ends the server that they have started
}

// newShell gives a newcomer a fresh home with a copy of the tree. Of this machine they have the programs, and what Go has downloaded and
// built before: with other paths left out of it (-trimpath), it is the same for every copy.
func newShell(t *testing.T) *shell {
	t.Helper()
	home := t.TempDir()
	p := &shell{home: home, tree: filepath.Join(home, "fermata"), own: filepath.Join(home, "mine")}
	bin := filepath.Join(home, "bin")
	for _, dir := range []string{p.own, bin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	copyTree(t, p.tree)
	// Nothing is downloaded: whatever this module needs is there already, and it is not to be taken from elsewhere under its own name.
	p.env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "GOBIN=" + bin, "GOFLAGS=-trimpath", "CGO_ENABLED=0", "GOPROXY=file://" + filepath.Join(home, "nothing")}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		p.env = append(p.env, name+"="+strings.TrimSpace(string(value)))
	}
	return p
}

// copyTree copies what git has or would take: nothing that is ignored, and nothing that only this machine has.
func copyTree(t *testing.T, to string) {
	t.Helper()
	git := func(dir string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v (it needs git, and a clone)", args, err)
		}
		return string(out)
	}
	root := strings.TrimSpace(git(".", "rev-parse", "--show-toplevel"))
	for name := range strings.SplitSeq(git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"), "\x00") {
		from := filepath.Join(root, name)
		info, err := os.Lstat(from)
		if name == "" || err != nil || !info.Mode().IsRegular() { // deleted, or being written by somebody
			continue
		}
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, info.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// export sets a variable for everything that follows.
func (p *shell) export(name, value string) {
	p.env = slices.DeleteFunc(p.env, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	p.env = append(p.env, name+"="+value)
}

func (p *shell) command(ctx context.Context, dir, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = dir, p.env
	return cmd
}

// types types a command into a terminal and returns what it prints. It must work.
func (p *shell) run(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := p.command(t.Context(), dir, script)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("$ %s\n%s%s%v", script, &out, &errs, err)
	}
	return out.String()
}

// maxWait presses Ctrl-C when the input ends: when this test is gone, however it went.
const maxWait = "exec 3<&0; { cat <&3; kill -INT 0; } >/dev/null 2>&1 & exec 3<&-; "

var exports = regexp.MustCompile(`export FERMATA_URL=(\S+) FERMATA_TOKEN=(\S+)`)

// serves starts a server in another terminal, exports what it says should be exported, and returns everything that it said.
func (p *shell) serve(t *testing.T, script string) string {
	t.Helper()
	if p.quit != nil {
		p.quit() // or the next one would have to go elsewhere
	}
	// On a port of its own: 8080 may be somebody else's here. This is the one thing that is not done to the letter.
	const flags = "--addr 127.0.0.1:0"
	if with := strings.ReplaceAll(script, "$FLAGS", flags); with != script {
		script = with
	} else {
		script += " " + flags
	}
	cmd := p.command(context.Background(), p.tree, maxWait+"exec "+script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // go run is two processes
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.quit = sync.OnceFunc(func() { stop(t, cmd, &errs) })
	t.Cleanup(p.quit)
	said := readProposals(out)
	match := exports.FindStringSubmatch(said)
	if match == nil {
		t.Fatalf("$ %s\nsays nothing about what to export:\n%s", script, said)
	}
	p.export("FERMATA_URL", match[1])
	p.export("FERMATA_TOKEN", match[2])
	return said
}

// readProposals reads until the last command that the demo proposes, or its end. What comes later is read and dropped, so that it can be written.
func readProposals(out io.Reader) string {
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "resumeValue") {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return said.String()
}

// stop presses Ctrl-C. What go run makes of that is its own affair; the server has to end, and without a complaint.
func stop(t *testing.T, cmd *exec.Cmd, errs *bytes.Buffer) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
	late := time.AfterFunc(time.Minute, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	_ = cmd.Wait()
	if !late.Stop() {
		t.Error("after Ctrl-C it did not end")
	}
	if strings.Contains(errs.String(), "fermata:") {
		t.Errorf("after Ctrl-C it says %s", errs)
	}
}
