package agent_test

import (
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
)

func TestChat_ACallIsMadeAndItsResultGoesToTheModel(t *testing.T) {
	everywhere(t, func(t *testing.T, p *program) {
		var c counter
		p.build = func() agent.Agent {
			return chat(&c, "clerk", tools(booking(&c), asking(&c, "ask")),
				script.Call("book", `{"to":"Paris"}`), script.Call("ask", `{"to":"Rome"}`), script.Say("Done."))
		}
		open := p.query("Book.")
		open.wantLog(t, `clerk says calls book({"to":"Paris"})`, "clerk did book: booked Paris", `clerk says calls ask({"to":"Rome"})`, "clerk waits for [ask Rome?]")
		again := p.resume()
		again.wantLog(t, "clerk waits for [ask Rome?]")
		p.answer(one(t, open.waits(t)), "go").wantLog(t, "clerk did ask: ask heard go", "clerk says Done.", "clerk finished")
		c.want(t, map[string]int{"model clerk": 3, "book Paris": 1, "enter ask": 2, "ask done": 1})
	})
}
