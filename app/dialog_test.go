package app

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/provider/inproc"
)

// talker is a client of the demo that holds a conversation.
type talker struct {
	*testing.T
	*client.Client
	id string
}

func (c *talker) say(text string) dialog.Record {
	c.Helper()
	r, err := c.SendMessage(c.Context(), c.id, api.SendMessage{Text: text})
	if err != nil {
		c.Fatal(err)
	}
	return r
}

// The demo has the assistant of examples/assistant. A conversation survives a restart at an open
// question.
func TestDemo_HasAnAssistantAndItsConversationSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	run := func(name string, test func(c *talker)) {
		t.Run(name, func(t *testing.T) {
			url, token := demoServer(t, dir)
			c, err := client.New(url, token)
			if err != nil {
				t.Fatal(err)
			}
			test(&talker{t, c, "c1"})
		})
	}
	run("first", func(c *talker) {
		if _, err := c.CreateConversation(c.Context(), api.CreateConversation{ID: c.id}); err != nil {
			c.Fatal(err)
		}
		if r := c.say("write to Anna about lunch"); !strings.Contains(r.Lines[len(r.Lines)-1].Text, "Which Anna") {
			c.Fatalf("%+v", r.Lines)
		}
	})
	run("second", func(c *talker) {
		if r := c.say("the one from sales"); !strings.Contains(r.Lines[len(r.Lines)-1].Text, "on its way to Anna Schmidt") {
			c.Fatalf("%+v", r.Lines)
		}
	})
}

// Two replicas on one PostgreSQL: a message through either continues the same conversation, and the
// same answer to both counts once. A question without an answer expires by itself.
func TestServe_ConversationOnTwoReplicas(t *testing.T) {
	url := pgtest.New(t)
	g := graph.New[string]("soon")
	g.Node("ask", func(ctx context.Context, _ string) (string, error) {
		answer, err := dialog.Ask(ctx, dialog.Question{Kind: dialog.Clarification, Text: "Now?", ExpiresAfter: 3 * time.Second})
		if answer.Expired {
			return "Too late.", err
		}
		return "Answered: " + answer.Text, err
	})
	g.Edge(graph.Start, "ask")
	g.Edge("ask", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	soon := inproc.Flow(flow, inproc.FlowConfig[string]{Content: func(s string) string { return s }})
	var replicas []*talker
	key := filepath.Join(t.TempDir(), "key")
	if err := serve.MakeKey(key); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p := &serve.Program{Program: new(cli.Program), Graphs: []inproc.Graph{soon}, Dialog: &executor.DialogConfig{Graph: "inproc:soon", Input: func(dialog.Start) (json.RawMessage, error) { return json.RawMessage(`""`), nil }}}
		r, _ := startProgram(t, settingsOf(t, "FERMATA_STORE_URL="+url, "FERMATA_KEY_FILE="+key), p)
		token, kept, err := authn.NewKey("acme", "ada", authn.RoleUser, time.Time{})
		if err == nil {
			err = operatorcmd.AddKey(t.Context(), r.Store, kept)
		}
		c, err2 := client.New(r.URL, token)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, &talker{t, c, "c1"})
	}
	one, two := replicas[0], replicas[1]
	if _, err := one.CreateConversation(t.Context(), api.CreateConversation{ID: "c1"}); err != nil {
		t.Fatal(err)
	}
	one.say("hello")
	var answers sync.WaitGroup
	for _, c := range replicas {
		answers.Go(func() {
			if _, err := c.SendMessage(t.Context(), c.id, api.SendMessage{ID: "m2", Text: "yes"}); err != nil {
				t.Error(err)
			}
		})
	}
	answers.Wait()
	r, err := two.Conversation(t.Context(), "c1")
	if err != nil || len(r.Lines) != 4 || len(r.Runs) != 1 || r.Lines[3].Text != "Answered: yes" {
		t.Fatalf("%+v, %v", r.Lines, err)
	}
	two.say("once more")
	for r.Lines[len(r.Lines)-1].Text != "Too late." {
		if err := cli.Sleep(t.Context(), 50*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		list, err := one.Conversations(t.Context()) // reading the conversation itself would expire it
		if err != nil {
			t.Fatal(err)
		}
		if list.Items[0].Open == 0 {
			if r, err = one.Conversation(t.Context(), "c1"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
