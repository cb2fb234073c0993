// Trip plans a journey and asks you for missing details. It shows [tool.FollowUp]: the model calls
// the tool with what it knows, you are asked for the rest, and again if your answer requires more;
// only then is the tool called.
//
//	go run ./examples/trip
//	go run ./examples/trip -model openai -task "Plan a long weekend for my family" -run family
//
// Planned trips are in .demo/calendar.jsonl.
package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/target"
	"github.com/fermata-go/fermata/tool"
)

func main() { console.Main(example) }

var example = console.Example{
	Name:  "trip",
	About: "an agent plans a trip, you tell it what it cannot know.",
	Task:  "We want to go to Lisbon in spring. Put it into my calendar.",
	Build: build,
}

func build(kit *console.Kit) (agent.Agent, error) {
	calendar := target.Open(kit.Data, "calendar")
	// Guard makes the call an effect: it gets a key, and happens once. The policy allows it,
	// because the person who gives the details wants the trip.
	plan := tool.FollowUp(tool.Guard(planTrip(calendar), wanted), missing)
	return agent.NewChat(agent.Chat{
		Name:        "planner",
		Instruction: "You plan trips. Call plan_trip with what the user said, and with nothing that you made up: the user is asked for the rest. Then repeat the plan in a sentence.",
		Model:       kit.Model(lines...),
		Tools:       []*tool.Tool{plan},
	})
}

// Trip is the argument of the tool. The model omits what it does not know.
type Trip struct {
	City       string   `json:"city"`
	Start      string   `json:"start,omitempty" jsonschema:"the day of departure, as 2027-05-31, if the user said it"`
	Nights     int      `json:"nights,omitempty" jsonschema:"if the user said it"`
	Travellers int      `json:"travellers,omitempty" jsonschema:"if the user said it"`
	Rooms      int      `json:"rooms,omitempty" jsonschema:"if the user said it"`
	Interests  []string `json:"interests,omitempty" jsonschema:"if the user said them"`
}

// missing returns the missing details. It depends only on the arguments, so that it returns the
// same in every process.
func missing(t Trip) []tool.Missing {
	open := always(t)
	if _, err := time.Parse(time.DateOnly, t.Start); t.Start != "" && err != nil {
		open = append(open, tool.Missing{Field: "start", Question: fmt.Sprintf("“%s” is not a date. Which day do you leave, as 2027-05-31?", t.Start)})
	}
	if t.Travellers > 2 && t.Rooms == 0 {
		open = append(open, tool.Missing{Field: "rooms", Question: fmt.Sprintf("How many rooms for %d people?", t.Travellers)})
	}
	return open
}

var always = tool.Needs[Trip](
	tool.Missing{Field: "start", Question: "Which day do you leave, as 2027-05-31?"},
	tool.Missing{Field: "nights", Question: "How many nights do you stay?"},
	tool.Missing{Field: "travellers", Question: "How many of you are there?"},
	tool.Missing{Field: "interests", Question: "What do you like, with commas between?"},
)

// planTrip is idempotent: the calendar stores the key of each entry.
func planTrip(calendar *target.Log) *tool.Tool {
	return tool.New("plan_trip", "Plans a trip and puts it into the user's calendar.", func(ctx context.Context, t Trip) (string, error) {
		start, err := time.Parse(time.DateOnly, t.Start)
		if err != nil {
			return "", tool.Errorf("%q is not a date.", t.Start)
		}
		if _, err := calendar.DoOnce(tool.Key(ctx), t); err != nil {
			return "", err
		}
		end := start.AddDate(0, 0, t.Nights).Format(time.DateOnly)
		return fmt.Sprintf("In the calendar: %s from %s to %s, %d travellers, %d rooms; one day each for %s.",
			t.City, t.Start, end, t.Travellers, max(1, t.Rooms), strings.Join(t.Interests, ", ")), nil
	}, tool.Idempotent())
}

var wanted = fermata.PolicyFunc(func(context.Context, fermata.ActionRequest) (fermata.Ruling, error) {
	return fermata.Ruling{Verdict: fermata.Allow, Rule: "own-calendar", Reason: "the user gave the details"}, nil
})

// lines is the scripted model.
var lines = []script.Line{
	script.Call("plan_trip", `{"city":"Lisbon"}`),
	console.Reply(func(result agent.Message) string {
		if result.Failed {
			return "Then there is no trip for now. " + result.Text
		}
		return "Have a good time. " + result.Text
	}),
}
