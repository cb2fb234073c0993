//go:build unix

package readmetest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// TestREADME_EveryCommandWorks follows README.md and then runs a review with a change request to
// its end, in each of three ways.
func TestREADME_EveryCommandWorks(t *testing.T) {
	p := newShell(t)
	readme, err := os.ReadFile(filepath.Join(p.tree, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	p.follow(t, string(readme))
	if !strings.Contains(strings.Join(p.env, " "), "FERMATA_URL=") {
		t.Fatal("README.md starts no server")
	}
	p.run(t, p.tree, "command -v fermata || go build -o $GOBIN/fermata ./cmd/fermata")
	t.Run("links", func(t *testing.T) {
		for _, file := range []string{"README.md", "CONTRIBUTING.md", "clients/typescript/README.md", "clients/python/README.md"} {
			checkLinks(t, p.tree, file)
		}
		docs, err := filepath.Glob(filepath.Join(p.tree, "docs", "*.md"))
		if err != nil || len(docs) == 0 {
			t.Fatal(docs, err)
		}
		for _, file := range docs {
			checkLinks(t, p.tree, filepath.Join("docs", filepath.Base(file)))
		}
	})
	t.Run("curl", func(t *testing.T) { reviewByCurl(t, p) })
	t.Run("fermata", func(t *testing.T) { reviewByCommands(t, p) })
	t.Run("Go", func(t *testing.T) { reviewByProgram(t, p) })
	t.Run("commands of the demo", func(t *testing.T) {
		proposed := proposals(p.serve(t, "fermata demo"))
		if len(proposed) < 5 {
			t.Errorf("it proposes %q", proposed)
		}
		p.followEach(t, proposed)
	})
}

// outcome holds the fields of an outcome that this test reads.
type outcome struct {
	Status     string
	Content    string
	Interrupts []struct {
		ID   string
		Data struct{ Draft struct{ Content string } }
	}
}

func (o outcome) asks(t *testing.T, draft string) {
	t.Helper()
	if o.Status != "needs_input" || len(o.Interrupts) != 1 || o.Interrupts[0].Data.Draft.Content != draft {
		t.Fatalf("it does not ask about %q: %+v", draft, o)
	}
}

func (o outcome) completed(t *testing.T, content string) {
	t.Helper()
	if o.Status != "completed" || o.Content != content {
		t.Fatalf("%+v", o)
	}
}

const (
	first  = "Five things about rain."
	second = first + " Now with umbrellas."
)

func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return value
}

func reviewByCurl(t *testing.T, p *shell) {
	chat := func(body string) outcome {
		return decode[outcome](t, p.run(t, p.tree, `curl -sS --fail-with-body "$FERMATA_URL/api/v1/ai/chat" -H "Authorization: Bearer $FERMATA_TOKEN" -H 'Content-Type: application/json' -d '`+body+`'`))
	}
	start := `{"graphId":"inproc:content-review","stateKey":"by-curl","input":{"topic":"rain"}}`
	chat(start).asks(t, first)
	chat(start).asks(t, first) // a repeated start counts once
	chat(`{"stateKey":"by-curl","resumeId":"r1","resumeValue":{"action":"revise","feedback":"umbrellas"}}`).asks(t, second)
	approve := `{"stateKey":"by-curl","resumeId":"r2","resumeValue":{"action":"approve"}}`
	chat(approve).completed(t, second)
	chat(approve).completed(t, second)
	refused := p.run(t, p.tree, `curl -sS -o /dev/null -w '%{http_code}' "$FERMATA_URL/api/v1/runs/by-curl"`)
	if refused != "401" {
		t.Errorf("without a key: %s", refused)
	}
}

func reviewByCommands(t *testing.T, p *shell) {
	decode[outcome](t, p.run(t, p.home, `fermata run inproc:content-review '{"topic":"rain"}' --key by-commands --json`)).asks(t, first)
	open := func() string {
		for _, r := range decode[[]api.Request](t, p.run(t, p.home, "fermata inbox --json")) {
			if r.StateKey == "by-commands" {
				return r.ID
			}
		}
		t.Fatal("no request is open")
		return ""
	}
	if shown := p.run(t, p.home, "fermata show "+open()); !strings.Contains(shown, first) {
		t.Errorf("show shows %s", shown)
	}
	decode[outcome](t, p.run(t, p.home, "fermata answer "+open()+` '{"action":"revise","feedback":"umbrellas"}' --json`)).asks(t, second)
	decode[outcome](t, p.run(t, p.home, "fermata approve "+open()+" --json")).completed(t, second)
	if seen := p.run(t, p.home, "fermata watch by-commands"); !strings.Contains(seen, "decided") || !strings.Contains(seen, second) {
		t.Errorf("watch prints %s", seen)
	}
	if list := p.run(t, p.home, "fermata runs --status completed"); !strings.Contains(list, "by-commands") {
		t.Errorf("runs prints %s", list)
	}
}

// program is a first program of a new user.
const program = `package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

func main() {
	c, err := client.New(os.Getenv("FERMATA_URL"), os.Getenv("FERMATA_TOKEN"))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	outcome, err := c.Start(ctx, "inproc:content-review", "by-program", json.RawMessage(` + "`" + `{"topic":"rain"}` + "`" + `))
	for _, answer := range []string{` + "`" + `{"action":"revise","feedback":"umbrellas"}` + "`, `" + `{"action":"approve"}` + "`" + `} {
		if err != nil {
			log.Fatal(err)
		}
		print(outcome)
		question := outcome.(fermata.NeedsInput).Interrupts[0]
		outcome, err = c.Decide(ctx, question.ID, api.Decide{Answer: json.RawMessage(answer)})
	}
	if err != nil {
		log.Fatal(err)
	}
	print(outcome)
}

func print(outcome fermata.Outcome) { json.NewEncoder(os.Stdout).Encode(outcome) }
`

func reviewByProgram(t *testing.T, p *shell) {
	if err := os.WriteFile(filepath.Join(p.own, "main.go"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(p.run(t, p.own, "go mod tidy && go run .")), "\n")
	if len(lines) != 3 {
		t.Fatal(fmt.Sprint(lines))
	}
	decode[outcome](t, lines[0]).asks(t, first)
	decode[outcome](t, lines[1]).asks(t, second)
	decode[outcome](t, lines[2]).completed(t, second)
}
