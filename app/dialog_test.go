package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/dialog"
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
