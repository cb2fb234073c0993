package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/provider/inproc"
)

type refund struct {
	Order   int    `json:"order"`
	Cents   int    `json:"cents"`
	Receipt string `json:"receipt,omitempty"`
}

// refunds is a graph that pays back after an approval.
func refunds(t *testing.T) inproc.Graph {
	t.Helper()
	type args struct {
		Order int `json:"order"`
		Cents int `json:"cents"`
	}
	g := graph.New[refund]("refund")
	g.Node("pay", func(ctx context.Context, r refund) (refund, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[args]{Name: "refund", Args: args{r.Order, r.Cents}, Summary: "Pay it back"})
		if err != nil {
			return r, err
		}
		r.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, a args, _ string) (string, error) {
			return fmt.Sprintf("paid back %d", a.Cents), nil
		})
		return r, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, inproc.FlowConfig[refund]{Content: func(r refund) string { return r.Receipt }})
}

// deskEnv is a server with the files of docs/desk.md, in the working directory, and its people.
type deskEnv struct {
	*testing.T
	url  string
	keys map[string]string
}

var roles = map[string]string{"bot": "agent", "bob": "approver", "dan": "approver", "eve": "approver", "mallory": "approver", "aud": "auditor", "ops": "admin"}

func openDeskEnv(t *testing.T) *deskEnv {
	t.Helper()
	return openDeskEnvWith(t, "", "")
}

// openDeskEnvWith is openDeskEnv with a change of the files.
func openDeskEnvWith(t *testing.T, before, after string) *deskEnv {
	t.Helper()
	text, err := os.ReadFile("../docs/desk.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, block := range fenced(string(text)) {
		name, ok := strings.CutPrefix(strings.SplitN(block.text, "\n", 2)[0], "# ")
		if block.language == "json" {
			name, ok = "inputs.jsonl", true
		}
		if ok {
			if err := os.WriteFile(name, []byte(strings.Replace(block.text, before, after, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	settings, err := config.Load(config.Source{File: "fermata.yaml", Environ: []string{
		"FERMATA_STORE_URL=sqlite:f.db", "FERMATA_LISTEN_ADDR=127.0.0.1:0", "FERMATA_METRICS_ADDR=off",
	}})
	if err != nil {
		t.Fatal(err)
	}
	graphs, err := sample.Graphs()
	if err != nil {
		t.Fatal(err)
	}
	running, _ := startOf(t, settings, append(graphs, refunds(t))...)
	o := &deskEnv{T: t, url: running.URL, keys: make(map[string]string)}
	for name, role := range roles {
		code, key, errOut := call(t, "keys", "create", "acme", name, role, "--store", "sqlite:f.db")
		if code != cli.ExitOK {
			t.Fatal(errOut)
		}
		o.keys[name] = strings.TrimSpace(key)
	}
	return o
}

// as runs a command as one of the people.
func (o *deskEnv) as(who string, args ...string) (code int, out, errOut string) {
	o.Helper()
	key, ok := o.keys[who]
	if !ok {
		o.Fatalf("unknown person %s", who)
	}
	o.Setenv("FERMATA_URL", o.url)
	o.Setenv("FERMATA_TOKEN", key)
	return call(o.T, args...)
}

// last returns the newest request.
func (o *deskEnv) last() api.Request {
	o.Helper()
	code, out, errOut := o.as("ops", "inbox", "--all", "--json")
	var list []api.Request
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != cli.ExitOK || len(list) == 0 {
		o.Fatal(code, out, errOut, err)
	}
	return list[len(list)-1]
}

type fence struct{ language, text string }

// fenced returns the code blocks of a text.
func fenced(text string) (blocks []fence) {
	for i, part := range strings.Split(text, "\n```") {
		if i%2 == 1 {
			language, content, _ := strings.Cut(part, "\n")
			blocks = append(blocks, fence{language, content + "\n"})
		}
	}
	return blocks
}

// step is a command of a text, with its person, exit code and expected output lines in order.
type step struct {
	who, command string
	exit         int
	prints       []string
}

var prompt = regexp.MustCompile(`^([a-z]+)\$ fermata (.*?)(?: # exit (\d+))?$`)

func steps(t *testing.T, blocks []fence) (all []step) {
	t.Helper()
	for _, block := range blocks {
		if block.language != "console" {
			continue
		}
		for line := range strings.Lines(block.text) {
			line = strings.TrimRight(line, "\n")
			switch found := prompt.FindStringSubmatch(line); {
			case found != nil:
				exit, _ := strconv.Atoi(found[3]) // none is 0
				all = append(all, step{who: found[1], command: found[2], exit: exit})
			case line == "":
			case len(all) == 0:
				t.Fatalf("%q has no command", line)
			default:
				all[len(all)-1].prints = append(all[len(all)-1].prints, line)
			}
		}
	}
	return all
}

// shows reports whether an output contains a line. An ellipsis matches anything, and spaces match
// spaces.
func shows(out, line string) bool {
	parts := strings.Split(line, "…")
	for i, part := range parts {
		words := strings.Fields(part)
		for k, word := range words {
			words[k] = regexp.QuoteMeta(word)
		}
		parts[i] = strings.Join(words, `[ ]+`)
	}
	return regexp.MustCompile(strings.Join(parts, `.*`)).MatchString(out)
}

// All commands of docs/desk.md work as described: by two people, on a server with its files.
func TestDocs_DeskCommandsWork(t *testing.T) {
	text, err := os.ReadFile("../docs/desk.md")
	if err != nil {
		t.Fatal(err)
	}
	o := openDeskEnv(t)
	all := steps(t, fenced(string(text)))
	if len(all) < 25 {
		t.Errorf("only %d commands were found: has the markup changed?", len(all))
	}
	for _, s := range all {
		words := shellWords(s.command)
		for i, word := range words {
			if word == "int_…" {
				words[i] = o.last().ID
			}
		}
		code, out, errOut := o.as(s.who, words...)
		if code != s.exit {
			t.Fatalf("%s$ fermata %s: %d\n%s%s", s.who, s.command, code, out, errOut)
		}
		for _, line := range s.prints {
			if !shows(out, line) {
				t.Errorf("%s$ fermata %s: no %q in\n%s", s.who, s.command, line, out)
			}
		}
	}
}

// The commands in the table of docs/desk.md exist.
func TestDocs_ActionTableParses(t *testing.T) {
	text, err := os.ReadFile("../docs/desk.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "| `fermata ") {
			continue
		}
		cell, _, _ := strings.Cut(line[1:], "|")
		for command := range strings.SplitSeq(cell, "`, `") {
			words := shellWords(strings.NewReplacer("fermata ", "", "`", "", "[", "", "]", "", "…", "x", "JSON", "{}").Replace(command))
			if _, err := model(t).Parse(words); err != nil {
				t.Errorf("%s: %v", command, err)
			}
			found++
		}
	}
	if found != 14 {
		t.Errorf("found %d commands", found)
	}
}
