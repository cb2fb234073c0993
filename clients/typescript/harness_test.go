package typescript

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fermata-go/fermata/internal/testserver"
)

// node is a directory with the sources of the client. Its node_modules is next to it.
type node struct {
	dir string
}

// tools is the relative path of node_modules.
const tools = "../node_modules/"

// open copies the sources, so that a build leaves no files here.
func open(t *testing.T) node {
	t.Helper()
	top := t.TempDir()
	if err := os.Symlink(installed(t), filepath.Join(top, "node_modules")); err != nil {
		t.Fatal(err)
	}
	n := node{dir: filepath.Join(top, "client")}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json", "tsconfig.json", "README.md"} {
		copyFile(t, name, filepath.Join(n.dir, name))
	}
	for _, name := range []string{"src", "test"} {
		if err := os.CopyFS(filepath.Join(n.dir, name), os.DirFS(name)); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// installed returns node_modules as defined by the lock file, installed once per lock file.
func installed(t *testing.T) string {
	t.Helper()
	lock, err := os.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(cache, "fermata-test", fmt.Sprintf("npm-%x", sha256.Sum256(lock)))
	done := filepath.Join(place, "node_modules")
	if _, err := os.Stat(done); err == nil {
		return done
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	fresh, err := os.MkdirTemp(filepath.Dir(place), "npm-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		copyFile(t, name, filepath.Join(fresh, name))
	}
	node{dir: fresh}.run(t, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	// another process was faster, or the rename failed
	if err := os.Rename(fresh, place); err != nil {
		if _, there := os.Stat(done); there != nil {
			t.Fatal(err)
		}
	}
	return done
}

// run runs a program there. Without Node these tests fail; they do not skip.
func (n node) run(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v (it needs Node 18 with npm, and the registry the first time): %v\n%s%s", name, args, err, &out, &errs)
	}
	return out.String()
}

// site is the program itself, as fermata demo.
type site struct{ URL, Token string }

func demo(t *testing.T) site {
	t.Helper()
	dir := t.TempDir()
	program, err := testserver.Program(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), program, "demo", "--json", "--every", "0s", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended with %v\n%s", err, &errs)
		}
	})
	var s site
	if err := json.NewDecoder(out).Decode(&s); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	return s
}
