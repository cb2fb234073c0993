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

// shell is a user's terminal: its directory, environment and a clean copy of the tree.
type shell struct {
	home string
	tree string // the copy
	own  string // the user's own module
	env  []string

	quit func() // stops the server that was started
}

// newShell creates a new home directory with a copy of the tree. It uses the programs of this
// machine and Go's caches; with -trimpath these are the same for every copy.
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
	// Nothing is downloaded: all dependencies are in the cache, and this module must not be fetched
	// under its own name.
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

// copyTree copies the files that git tracks or would add, and nothing that is ignored.
func copyTree(t *testing.T, to string) {
	t.Helper()
	git := func(dir string, args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v (this test needs git and a clone)", args, err)
		}
		return string(out)
	}
	root := strings.TrimSpace(git(".", "rev-parse", "--show-toplevel"))
	for name := range strings.SplitSeq(git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"), "\x00") {
		from := filepath.Join(root, name)
		info, err := os.Lstat(from)
		if name == "" || err != nil || !info.Mode().IsRegular() { // deleted, or being written
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

// export sets an environment variable for later commands.
func (p *shell) export(name, value string) {
	p.env = slices.DeleteFunc(p.env, func(s string) bool { return strings.HasPrefix(s, name+"=") })
	p.env = append(p.env, name+"="+value)
}

func (p *shell) command(ctx context.Context, dir, script string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir, cmd.Env = dir, p.env
	return cmd
}

// run runs a command and returns its output. The command must succeed.
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

// quitScript sends SIGINT when the input ends, so that the server stops when this test ends.
const quitScript = "exec 3<&0; { cat <&3; kill -INT 0; } >/dev/null 2>&1 & exec 3<&-; "

var exports = regexp.MustCompile(`export FERMATA_URL=(\S+) FERMATA_TOKEN=(\S+)`)

// serve starts a server in the background, exports the variables that it proposes, and returns its
// output.
func (p *shell) serve(t *testing.T, script string) string {
	t.Helper()
	if p.quit != nil {
		p.quit() // frees the port for the next one
	}
	// The server uses a free port, because 8080 may be taken. Otherwise the command is unchanged.
	const flags = "--addr 127.0.0.1:0"
	if with := strings.ReplaceAll(script, "$FLAGS", flags); with != script {
		script = with
	} else {
		script += " " + flags
	}
	cmd := p.command(context.Background(), p.tree, quitScript+"exec "+script)
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
		t.Fatalf("$ %s\ndoes not propose variables to export:\n%s", script, said)
	}
	p.export("FERMATA_URL", match[1])
	p.export("FERMATA_TOKEN", match[2])
	return said
}

// readProposals reads up to the last command that the demo proposes. It discards later output, so
// that the server does not block.
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

// stop sends SIGINT. The server must end without an error message; the exit code of go run is
// ignored.
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
