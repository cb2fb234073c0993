// Dataagent works on a real SQLite database. Reads run immediately; everything that could change
// data waits for you. It shows [tool.Guard]: one tool, and a policy that decides per call.
//
//	SELECT                                   runs at once, on a read-only connection
//	DELETE, DROP, UPDATE, ALTER, INSERT …    asks you, and runs once
//	statements that the policy does not know ask you
//	two statements in one, BEGIN, COMMIT     denied; the model gets the reason
//
// Try:
//
//	go run ./examples/dataagent
//	go run ./examples/dataagent -model anthropic -task "Delete the products without orders" -run tidy
//
// The database is .demo/shop.db; remove it to start with a new one.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/tool"
)

func main() { console.Main(example) }

var example = console.Example{
	Name:  "dataagent",
	About: "an agent works on a database, you approve what changes something.",
	Task:  "Raise the price of everything that we still sell by ten percent.",
	Build: build,
}

func build(kit *console.Kit) (agent.Agent, error) {
	shop, err := openShop(filepath.Join(kit.Data, "shop.db"))
	if err != nil {
		return nil, err
	}
	kit.AtExit(shop.Close)
	return agent.NewChat(agent.Chat{
		Name: "analyst",
		Instruction: "You answer questions about a SQLite database and change it if you are told to. Its tables are products (id, name, price in cents, discontinued) and " +
			"orders (id, product, amount). Look before you change anything. Each call takes one statement.",
		Model: kit.Model(lines...),
		Tools: []*tool.Tool{tool.Guard(runSQL(shop), readsOnly, tool.Summary(summary))},
	})
}

// Statement is the argument of the tool.
type Statement struct {
	SQL string `json:"sql" jsonschema:"one statement"`
	Why string `json:"why" jsonschema:"what it is for, for the person who may have to approve it"`
}

// runSQL is idempotent, because the shop stores the key in the same transaction as the change.
func runSQL(shop *Shop) *tool.Tool {
	return tool.New("run_sql", "Runs one SQL statement.", func(ctx context.Context, s Statement) (string, error) {
		if classify(s.SQL).reads() {
			return shop.Read(ctx, s.SQL)
		}
		return shop.Change(ctx, s.SQL, tool.Key(ctx))
	}, tool.Idempotent())
}

// readsOnly is the policy. It allows statements that are known to be harmless: everything else
// needs a person.
var readsOnly = fermata.PolicyFunc(func(_ context.Context, a fermata.ActionRequest) (fermata.Ruling, error) {
	var s Statement
	if err := json.Unmarshal(a.Args, &s); err != nil {
		return fermata.Ruling{}, err
	}
	return classify(s.SQL).ruling(), nil
})

func summary(args json.RawMessage) string {
	var s Statement
	if err := json.Unmarshal(args, &s); err != nil {
		return "Change the database" // the arguments are shown below
	}
	return fmt.Sprintf("Change the database with %s", classify(s.SQL).verb)
}

// lines is the scripted model. The second line is a typical mistake of models.
var lines = []script.Line{
	run("SELECT name, price, discontinued FROM products", "see what there is"),
	run("BEGIN; UPDATE products SET price = price * 110 / 100 WHERE NOT discontinued; COMMIT", "raise the prices"),
	run("UPDATE products SET price = price * 110 / 100 WHERE NOT discontinued", "raise the prices"),
	console.Reply(func(result agent.Message) string {
		if result.Failed {
			return "The prices are as they were. " + result.Text
		}
		return "The prices are raised. " + result.Text
	}),
}

func run(sql, why string) script.Line {
	args, err := json.Marshal(Statement{sql, why})
	if err != nil {
		return script.Fail(err)
	}
	return script.Call("run_sql", string(args))
}
