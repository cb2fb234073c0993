package deploy

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/pgtest"
)

// database creates an empty database on a real PostgreSQL.
func database(t *testing.T) string {
	t.Helper()
	return pgtest.New(t)
}

func run(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", words, err, out)
	}
}

// waiting starts a review and returns its request id.
func waiting(t *testing.T, c *client.Client, key string) string {
	t.Helper()
	outcome, err := c.Start(t.Context(), "inproc:content-review", key, json.RawMessage(`{"topic":"rain"}`))
	return asked(t, outcome, err)
}

func asked(t *testing.T, outcome fermata.Outcome, err error) string {
	t.Helper()
	waits, ok := outcome.(fermata.NeedsInput)
	if err != nil || !ok {
		t.Fatalf("it does not wait: %#v, %v", outcome, err)
	}
	return waits.Interrupts[0].ID
}

// approved decides, and expects the end of the run.
func approved(t *testing.T, c *client.Client, id, answer string) {
	t.Helper()
	outcome, err := c.Decide(t.Context(), id, api.Decide{Answer: json.RawMessage(answer)})
	if _, done := outcome.(fermata.Completed); err != nil || !done {
		t.Fatalf("%#v, %v", outcome, err)
	}
}

// TestOperations runs the commands of docs/operations.md, block by block.
func TestOperations(t *testing.T) {
	p := open(t, "operations.md")
	t.Cleanup(func() { p.allUsed(t) }) // after all of them
	t.Run("backup and restore of SQLite", func(t *testing.T) { sqliteBackup(t, p) })
	t.Run("backup and restore of PostgreSQL", func(t *testing.T) { postgresBackup(t, p) })
	t.Run("an auditor keeps checkpoints", func(t *testing.T) { fetchedCheckpoints(t, p) })
	t.Run("a role for servers", func(t *testing.T) { twoRoles(t, p) })
	t.Run("maintenance", func(t *testing.T) { maintenance(t, p) })
	t.Run("rotation of copied keys", func(t *testing.T) { copiedKeys(t, p) })
}

// A run that waits during the backup continues after a restore; one that was started later does not
// exist there.
func sqliteBackup(t *testing.T, p *page) {
	old, backup, fresh := t.TempDir(), t.TempDir(), t.TempDir()
	live := demo(t, old)
	before := waiting(t, live.client(t), "before")
	shell{places: map[string]string{"/var/lib/fermata": old, "/backup": backup}}.runBlock(t, p, "backup-sqlite")
	waiting(t, live.client(t), "after")
	// Left behind by a killed server, where the backup is restored.
	run(t, "cp", filepath.Join(old, "fermata.db-wal"), fresh)
	live.stop(t)
	chownToServer(t, fresh)
	shell{places: map[string]string{"/var/lib/fermata": fresh, "/backup": backup}}.runBlock(t, p, "restore-sqlite")
	checkOwnedByServer(t, fresh)
	restored := demo(t, fresh).client(t)
	approved(t, restored, before, `{"action":"approve"}`)
	if _, err := restored.Run(t.Context(), "after"); err == nil {
		t.Error("a run that was started after the backup exists")
	}
}

// A server has its own user, and root restores: the files must be readable for the server.
const serverUser = "65534"

func chownToServer(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() == 0 {
		run(t, "chown", "-R", serverUser, dir)
	}
}

func checkOwnedByServer(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	if others, err := exec.CommandContext(t.Context(), "find", dir, "!", "-user", serverUser).CombinedOutput(); err != nil || len(others) > 0 {
		t.Errorf("the server cannot open files of another user: %s%v", others, err)
	}
}

// testServer is a directory with the configuration of a server.
type testServer struct {
	dir, config string
}

func setUpServer(t *testing.T, url string) testServer {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "store-url", url+"\n")
	call(t, "key", "make", filepath.Join(dir, "key"))
	text := fmt.Sprintf("store: {urlFile: %q}\nkey: {file: %q}\nmetrics: {addr: \"off\"}\n", filepath.Join(dir, "store-url"), filepath.Join(dir, "key"))
	return testServer{dir: dir, config: write(t, dir, "fermata.yaml", text)}
}

// serve starts a server there, with a new API key.
func (h testServer) serve(t *testing.T, args ...string) *process {
	t.Helper()
	s := serve(t, h.config, args...)
	s.Token = call(t, "keys", "create", "acme", "tester", "admin", "--config", h.config)
	return s
}

func (h testServer) shell() shell {
	return shell{dir: h.dir, env: []string{"FERMATA_CONFIG=" + h.config}, places: map[string]string{"/etc/fermata": h.dir, "/backup": h.dir}}
}

// question creates a request of an external agent.
func question(t *testing.T, c *client.Client, key string) string {
	t.Helper()
	outcome, err := c.CreateRequest(t.Context(), api.CreateRequest{StateKey: key, Kind: "refund", Data: json.RawMessage(`{"amount":12}`)})
	return asked(t, outcome, err)
}

func postgresBackup(t *testing.T, p *page) {
	from, to := database(t), database(t)
	h := setUpServer(t, from)
	live := h.serve(t)
	id := question(t, live.client(t), "refund-1")
	s := h.shell()
	s.env = append(s.env, "DATABASE_URL="+from, "NEW_DATABASE_URL="+to)
	// A separate role for servers is in the dump, but not where it is restored.
	psql := func(statement string) {
		run(t, "psql", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement, pgtest.Superuser(t, from))
	}
	psql(`CREATE ROLE only_there`)
	psql(`GRANT USAGE ON SCHEMA fermata TO only_there`)
	s.runBlock(t, p, "backup-postgres")
	live.stop(t)
	psql(`DROP OWNED BY only_there`)
	psql(`DROP ROLE only_there`)
	s.runBlock(t, p, "restore-postgres")

	write(t, h.dir, "store-url", to)
	restored := serve(t, h.config)
	restored.Token = live.Token // it is in the backup
	approved(t, restored.client(t), id, `"yes"`)
}

// An auditor fetches checkpoints remotely, and verifies the store against them.
func fetchedCheckpoints(t *testing.T, p *page) {
	h, live, _ := signing(t)
	s := h.shell()
	s.places["/mnt/checkpoints"] = filepath.Join(t.TempDir(), "fetched")
	auditor := call(t, "keys", "create", "acme", "aud", "auditor", "--config", h.config)
	s.env = append(s.env, "FERMATA_URL="+live.URL, "FERMATA_TOKEN="+auditor)
	if out := s.runBlock(t, p, "audit-keep"); !strings.Contains(out, "Valid") || !strings.Contains(out, "Signed up to") {
		t.Errorf("%s", out)
	}
}

// A server with only the documented privileges can do everything, including keys and erasure.
func twoRoles(t *testing.T, p *page) {
	owner := database(t)
	lesser, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(database(t)) // its role owns nothing in the first one
	if err != nil {
		t.Fatal(err)
	}
	lesser.User = other.User
	h := setUpServer(t, lesser.String())
	t.Setenv("FERMATA_STORE_MIGRATE", "false")
	s := h.shell()
	s.env = append(s.env, "OWNER_URL="+owner)
	s.places["fermata_server"] = other.User.Username()
	s.runBlock(t, p, "two-roles")

	live := h.serve(t)
	approved(t, live.client(t), question(t, live.client(t), "refund-1"), `"yes"`)
	call(t, "key", "rotate", "--settle", "1s", "--config", h.config)
	call(t, "store", "erase", "acme", "--yes", "--config", h.config)
	if left := call(t, "store", "export", "acme", "--config", h.config); left != "" {
		t.Errorf("after erasure: %s", left)
	}
	live.stop(t)
}

func maintenance(t *testing.T, p *page) {
	t.Parallel() // a key rotation waits half a minute
	h := setUpServer(t, "sqlite:"+filepath.Join(t.TempDir(), "fermata.db"))
	live := h.serve(t)
	id := question(t, live.client(t), "refund-1")
	s := h.shell()
	if out := s.runBlock(t, p, "first-key"); strings.Count(out, "fermata_") < 2 || !strings.Contains(out, "review-bot") {
		t.Errorf("keys: %s", out)
	}
	s.runBlock(t, p, "upgrade")

	before, err := os.ReadFile(filepath.Join(h.dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	s.runBlock(t, p, "rotate")
	after, err := os.ReadFile(filepath.Join(h.dir, "key"))
	if err != nil || string(before) == string(after) {
		t.Errorf("the key has not changed, %v", err)
	}
	approved(t, live.client(t), id, `"yes"`)

	var list []struct{ ID, Name string }
	text := call(t, "keys", "list", "acme", "--json", "--config", h.config)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err, text)
	}
	for _, k := range list {
		if k.Name == "tester" {
			s.env = append(s.env, "KEY_ID="+k.ID)
		}
	}
	s.runBlock(t, p, "revoke")
	if _, err := live.client(t).Graphs(t.Context()); err == nil {
		t.Error("a revoked key is accepted")
	}

	s.runBlock(t, p, "erase")
	if export, err := os.ReadFile(filepath.Join(h.dir, "acme.jsonl")); err != nil || !strings.Contains(string(export), "refund-1") {
		t.Errorf("the export: %s, %v", export, err)
	}
	if left := call(t, "store", "export", "acme", "--config", h.config); left != "" {
		t.Errorf("after erasure: %s", left)
	}
}

// Each replica has a copy of the key. At every step each can decrypt what the others encrypt.
func copiedKeys(t *testing.T, p *page) {
	t.Parallel() // a key rotation waits half a minute
	h := setUpServer(t, "sqlite:"+filepath.Join(t.TempDir(), "fermata.db"))
	first := h.serve(t)
	id := question(t, first.client(t), "refund-1")
	first.stop(t)
	h.shell().runBlock(t, p, "rotate-copies")
	replica := func(key string) *process {
		if err := os.Chmod(filepath.Join(h.dir, key), 0o600); err != nil {
			t.Fatal(err)
		}
		return h.serve(t, "--key-file", filepath.Join(h.dir, key))
	}
	// All three rollouts at once: replicas that can read the new key, that write with it, and that
	// have only the new key.
	opens, seals, last := replica("opens.key"), replica("seals.key"), replica("new.key")
	if sealed := question(t, seals.client(t), "refund-2"); sealed != "" {
		if _, err := opens.client(t).Request(t.Context(), sealed); err != nil {
			t.Error("a replica of the first rollout cannot decrypt what one of the second encrypted:", err)
		}
	}
	approved(t, last.client(t), id, `"yes"`)
}
