package app

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

type memo struct {
	Text string `json:"text"`
}

var sign = fermata.NewKind[string, string]("sign-of-app-test")

func signGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[memo]("memo")
	g.Node("sign", func(ctx context.Context, m memo) (memo, error) {
		name, err := sign.Ask(ctx, m.Text)
		m.Text += name
		return m, err
	})
	g.Edge(graph.Start, "sign")
	g.Edge("sign", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[memo]{})
}

// openServer is a server on a store in a directory, as seen by the commands.
func openServer(t *testing.T) (url string, e *executor.Executor) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fermata.db")
	if err := seal.CreateKeyFile(path + ".key"); err != nil {
		t.Fatal(err)
	}
	file, err := seal.OpenKeyFile(path + ".key")
	if err != nil {
		t.Fatal(err)
	}
	return "sqlite:" + path, openServerWith(t, path, file)
}

func openServerWith(t *testing.T, path string, seals executor.Sealer) *executor.Executor {
	t.Helper()
	s, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(signGraph(t))
	if err != nil {
		t.Fatal(err)
	}
	e, err := executor.New(executor.Config{Store: s, Sealer: seals, Providers: []provider.Provider{p}, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// call runs the program.
func call(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func startMemo(t *testing.T, e *executor.Executor, account string) {
	t.Helper()
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: account, StateKey: "memo-1", Graph: "inproc:memo", Input: json.RawMessage(`{"text":"by "}`)})
	if _, waits := outcome.(fermata.NeedsInput); err != nil || !waits {
		t.Fatal(outcome, err)
	}
}

func TestKeyRotate_WhileAServerRuns(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	file := strings.TrimPrefix(url, "sqlite:") + ".key"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	code, out, errOut := call(t, "key", "rotate", "--settle", "0s", "--store", url)
	if code != cli.ExitOK || !strings.Contains(out, "rotated") {
		t.Fatalf("%d %s %s", code, out, errOut)
	}
	// a job log used to get all progress in one line
	if !strings.HasPrefix(errOut, "round 1: ") || strings.Contains(errOut, "\r") {
		t.Errorf("without a terminal it prints %q", errOut)
	}
	after, err := os.ReadFile(file)
	if err != nil || bytes.Contains(after, bytes.TrimSpace(before)) || len(after) != len(before) {
		t.Errorf("the old key is still there, %v", err)
	}
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "memo-1", ResumeID: "1", Actor: "ann", Value: json.RawMessage(`"ann"`)})
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || string(done.Output) != `{"text":"by ann"}` {
		t.Errorf("the server resumes with %#v, %v", outcome, err)
	}
}

// triggerWriter calls a function when a text is written.
type triggerWriter struct {
	text string
	then func()
}

func (h *triggerWriter) Write(text []byte) (int, error) {
	if h.then != nil && bytes.Contains(text, []byte(h.text)) {
		h.then()
		h.then = nil
	}
	return len(text), nil
}

// A paused process writes a value encrypted with the old key after everything else was
// re-encrypted.
func TestKeyRotate_WaitsForPausedProcess(t *testing.T) {
	url, e := openServer(t)
	path := strings.TrimPrefix(url, "sqlite:")
	stoodStill := &triggerWriter{"waiting", func() {
		text, err := os.ReadFile(path + ".key")
		if err != nil {
			t.Fatal(err)
		}
		var keys []seal.Key
		for line := range strings.Lines(string(text)) {
			key, err := seal.ParseKey(line)
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		seals, err := seal.New(keys[1], keys[0]) // with the old one
		if err != nil {
			t.Fatal(err)
		}
		startMemo(t, openServerWith(t, path, seals), "acme")
	}}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"key", "rotate", "--settle", "0s", "--store", url}, &out, stoodStill); code != cli.ExitOK || stoodStill.then != nil {
		t.Fatalf("%d %s", code, out.String())
	}
	outcome, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "memo-1", ResumeID: "1", Actor: "ann", Value: json.RawMessage(`"ann"`)})
	if done, ok := outcome.(fermata.Completed); err != nil || !ok || string(done.Output) != `{"text":"by ann"}` {
		t.Errorf("the late write is lost: %#v, %v", outcome, err)
	}
}

func TestKeyRotate_ConcurrentRotationIsRejected(t *testing.T) {
	url, _ := openServer(t)
	again := &triggerWriter{"round 1", func() {
		if code, _, errOut := call(t, "key", "rotate", "--settle", "0s", "--store", url); code == cli.ExitOK || !strings.Contains(errOut, "another key rotation is in progress") {
			t.Errorf("the second one: %d %s", code, errOut)
		}
	}}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"key", "rotate", "--settle", "0s", "--store", url}, &out, again); code != cli.ExitOK || again.then != nil {
		t.Fatalf("%d %s", code, out.String())
	}
}

func TestStore_SizeVacuumExportErase(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	startMemo(t, e, "other")
	code, out, errOut := call(t, "store", "size", "--store", url)
	if code != cli.ExitOK || !strings.Contains(out, "runs") || !strings.Contains(out, "2 rows") {
		t.Errorf("size: %d %s %s", code, out, errOut)
	}
	code, out, errOut = call(t, "store", "export", "acme", "--store", url)
	if code != cli.ExitOK || strings.Count(out, "\n") != 1 || !strings.Contains(out, `"by "`) {
		t.Errorf("export: %d %s %s", code, out, errOut)
	}
	if code, out, _ = call(t, "store", "erase", "acme", "--store", url); code != cli.ExitOK || !strings.Contains(out, "--yes") {
		t.Errorf("erase without yes: %d %s", code, out)
	}
	if code, out, errOut = call(t, "store", "erase", "acme", "--yes", "--store", url); code != cli.ExitOK || !strings.Contains(out, "1 runs") {
		t.Errorf("erase: %d %s %s", code, out, errOut)
	}
	if code, out, _ = call(t, "store", "export", "acme", "--store", url); code != cli.ExitOK || out != "" {
		t.Errorf("after it: %d %s", code, out)
	}
	if code, out, _ = call(t, "store", "export", "other", "--store", url); code != cli.ExitOK || strings.Count(out, "\n") != 1 {
		t.Errorf("the other one: %d %s", code, out)
	}
	if code, out, errOut = call(t, "store", "vacuum", "--store", url); code != cli.ExitOK {
		t.Errorf("vacuum: %d %s %s", code, out, errOut)
	}
}

// An export file is complete: a truncated one would look like an account with fewer runs.
// Unreadable data must not prevent the export of the rest.
func TestStore_ExportIsAtomic(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	dir := t.TempDir()
	export := func(name string) (code int, errOut, file string) {
		code, _, errOut = call(t, "store", "export", "acme", "--store", url, "-o", filepath.Join(dir, name))
		text, _ := os.ReadFile(filepath.Join(dir, name))
		return code, errOut, string(text)
	}
	if code, errOut, file := export("whole"); code != cli.ExitOK || errOut != "1 runs\n" || !strings.Contains(file, `"by "`) {
		t.Errorf("%d %s %s", code, errOut, file)
	}
	execSQL(t, url, `DROP TRIGGER runs_input_once; UPDATE runs SET input = x'00'`)
	if code, errOut, file := export("unreadable"); code == cli.ExitOK || !strings.Contains(errOut, "unreadable") || !strings.Contains(file, `"Unreadable"`) {
		t.Errorf("%d %s %s", code, errOut, file)
	}
	if code, out, errOut := call(t, "store", "export", "acme", "--store", url); code == cli.ExitOK || !strings.Contains(errOut, "unreadable") || !strings.Contains(out, `"Unreadable"`) {
		t.Errorf("%d %s %s", code, errOut, out)
	}
	execSQL(t, url, `DROP TABLE events`)
	if code, errOut, _ := export("part"); code == cli.ExitOK || strings.Contains(errOut, "runs\n") {
		t.Errorf("%d %s", code, errOut)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 2 {
		t.Errorf("there is %v, %v", files, err)
	}
}

// execSQL changes a store in a way that the program would not.
func execSQL(t *testing.T, url, statements string) {
	t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(url, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// A store that was emptied is an error, and not a new store without keys and runs.
func TestStore_EmptiedFileIsNotANewStore(t *testing.T) {
	for _, args := range [][]string{{"serve", "--addr", "127.0.0.1:0"}, {"migrate"}} {
		path := filepath.Join(t.TempDir(), "fermata.db")
		url := "sqlite:" + path
		if code, _, errOut := call(t, "migrate", "--store", url); code != cli.ExitOK {
			t.Fatal(errOut)
		}
		for _, name := range []string{path + "-wal", path + "-shm"} {
			_ = os.Remove(name)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		code, _, errOut := call(t, append(args, "--store", url)...)
		if code != cli.ExitUsage || !strings.Contains(errOut, "restore the store from a backup") {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
		if file, err := os.Stat(path); err != nil || file.Size() != 0 {
			t.Errorf("%v: the file was changed: %v", args, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if code, _, errOut := call(t, "migrate", "--store", url); code != cli.ExitOK { // the same key
			t.Errorf("a new store: %s", errOut)
		}
	}
}

func TestStore_ErrorsExplain(t *testing.T) {
	url, _ := openServer(t)
	path := strings.TrimPrefix(url, "sqlite:")
	link := filepath.Join(t.TempDir(), "fermata.key")
	if err := os.Symlink("nowhere", link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no such store":     {[]string{"store", "size", "--store", "sqlite:" + path + "x"}, cli.ExitNotFound, "no such store"},
		"what is it":        {[]string{"store", "size", "--store", "mysql://root:secret@x"}, cli.ExitUsage, "neither"},
		"unknown command":   {[]string{"stroe"}, cli.ExitUsage, "unexpected argument stroe"},
		"not parked":        {[]string{"store", "retry", "acme", "x", "--store", url}, cli.ExitNotFound, "unknown state key"},
		"no key file":       {[]string{"store", "export", "acme", "--store", url, "--key-file", path + ".gone"}, cli.ExitUsage, "restore it. For a new store: fermata key make "},
		"negative duration": {[]string{"key", "rotate", "--settle=-1s", "--store", url}, cli.ExitUsage, "must not be negative"},
		"no shared key":     {[]string{"key", "rotate", "--store", "postgres://localhost/x"}, cli.ExitUsage, "key.file) is missing"},
		"output is there":   {[]string{"store", "export", "acme", "--store", url, "-o", path}, cli.ExitUsage, "already exists"},
		"key is a link":     {[]string{"key", "make", link}, cli.ExitUsage, "already exists"},
		"account required":  {[]string{"store", "erase", "--store", url}, cli.ExitUsage, "account"},
	} {
		code, _, errOut := call(t, c.args...)
		if code != c.code || !strings.Contains(errOut, c.want) || strings.Contains(errOut, "secret") {
			t.Errorf("%s: %d %s", name, code, errOut)
		}
	}
	other := path + ".other"
	if err := seal.CreateKeyFile(other); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := call(t, "store", "export", "acme", "--store", url, "--key-file", other); code != cli.ExitRejected || !strings.Contains(errOut, "the key does not belong to this store") {
		t.Errorf("another key: %d %s", code, errOut)
	}
}
