package deploy

import (
	"database/sql"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "modernc.org/sqlite"
)

// page is a document with named blocks of commands.
type page struct {
	name   string
	blocks map[string]string
	used   sync.Map // the names of executed blocks
}

func open(t *testing.T, name string) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{name: name, blocks: make(map[string]string)}
	for _, match := range regexp.MustCompile("(?ms)^<!-- test: (\\S+) -->\n```sh\n(.*?)^```").FindAllStringSubmatch(string(text), -1) {
		p.blocks[match[1]] = match[2]
	}
	return p
}

// shell is where the commands of a page are executed.
type shell struct {
	dir string
	env []string
	// places replaces paths of the page: the test cannot write to /var/lib/fermata and /backup.
	places map[string]string
}

// runBlock executes a block unchanged. Each command must succeed.
func (s shell) runBlock(t *testing.T, p *page, block string) string {
	t.Helper()
	script, ok := p.blocks[block]
	if !ok {
		t.Fatalf("%s has no block %s", p.name, block)
	}
	p.used.Store(block, true)
	for from, to := range s.places {
		script = strings.ReplaceAll(script, from, to)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-eu", "-c", script)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + filepath.Dir(program(t, "fermata")) + ":" + tools(t) + ":" + os.Getenv("PATH")}, s.env...)...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s, %s: %v\n%s%s", p.name, block, err, out, &errs)
	}
	return string(out)
}

// allUsed fails if a block was not executed, because an untested block is unreliable.
func (p *page) allUsed(t *testing.T) {
	t.Helper()
	if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		return // only some of them were selected
	}
	var left []string
	for name := range p.blocks {
		if _, used := p.used.Load(name); !used {
			left = append(left, name)
		}
	}
	if slices.Sort(left); len(left) > 0 || len(p.blocks) == 0 {
		t.Errorf("%s: %v of %d blocks were not executed", p.name, left, len(p.blocks))
	}
}

// tools returns a directory with programs that a test machine may lack: PostgreSQL's, which are not
// always on the path, and a sqlite3 that is this test binary.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if len(found) == 0 {
			t.Fatalf("%s is missing: install PostgreSQL", name)
		}
		if err := os.Symlink(found[len(found)-1], filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := exec.LookPath("sqlite3"); err != nil {
		self, err := os.Executable()
		if err == nil {
			err = os.Symlink(self, filepath.Join(dir, "sqlite3"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sqlite3 implements the part of the program sqlite3 that is needed here: one statement on one
// file.
func sqlite3(file, statement string) int {
	db, err := sql.Open("sqlite", file)
	if err == nil {
		_, err = db.Exec(statement)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
