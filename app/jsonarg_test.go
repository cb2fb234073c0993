package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
)

// Long or confidential JSON is read from a file; standard input is tested in cmd/fermata's
// json.txtar.
func TestJSONArg_FromFile(t *testing.T) {
	call := startDemo(t, t.TempDir())
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "@" + path
	}
	long := strings.Repeat("tea ", 50_000) // Linux limits an argument to 128 KiB
	topic, err := json.Marshal(map[string]string{"topic": long})
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		args []string
		says string
	}{
		"no file":              {[]string{"run", "inproc:content-review", "@" + filepath.Join(dir, "none.json")}, "the input: open "},
		"a folder":             {[]string{"run", "inproc:content-review", "@" + dir}, "is a directory"},
		"a file, but not JSON": {[]string{"run", "inproc:content-review", write("bad.json", "{")}, "bad.json is not valid JSON"},
		"too much":             {[]string{"run", "inproc:content-review", write("huge.json", strings.Repeat(" ", cli.MaxJSONArg+1))}, "larger than 64 MiB"},
		"no JSON":              {[]string{"run", "inproc:content-review", "tea"}, "the input is not valid JSON"},
		"no name":              {[]string{"run", "inproc:content-review", "@"}, "the input: the file name after @ is missing"},
	} {
		if code, out, errOut := call(c.args...); code != cli.ExitUsage || !strings.Contains(errOut, c.says) {
			t.Errorf("%s: %d\n%s%s", what, code, out, errOut)
		}
	}
	if code, out, errOut := call("run", "inproc:content-review", write("topic.json", string(topic)), "--key", "long"); code != cli.ExitOK {
		t.Fatalf("%d\n%.300s%s", code, out, errOut)
	}
	held := inboxOf(t, call)["drop-users"] // one of the demo's: its arguments cannot be edited
	for what, args := range map[string]string{"other arguments": write("args.json", `{"name":"orders","rows":1}`), "no JSON": write("noargs.json", "orders")} {
		if code, out, errOut := call("approve", held.ID, "--args", args); code == cli.ExitOK || what == "no JSON" && !strings.Contains(errOut, "--args: ") || what != "no JSON" && strings.Contains(errOut, "JSON") {
			t.Errorf("%s: %d\n%s%s", what, code, out, errOut)
		}
	}
	id := inboxOf(t, call)["long"].ID
	if code, _, errOut := call("answer", id, write("bad.json", "approve")); code != cli.ExitUsage || !strings.Contains(errOut, "the answer: ") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, out, errOut := call("answer", id, write("answer.json", `{"action":"approve"}`)); code != cli.ExitOK || !strings.Contains(out, "completed") {
		t.Errorf("%d\n%.300s%s", code, out, errOut)
	}
}
